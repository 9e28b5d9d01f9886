package k8s

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

// settings are the annotations, and the equal ConfigMap keys, that make a
// policy. Each sets its part of p or says what values are allowed; p is
// unchanged then.
var settings = map[string]func(p *route.Policy, value string) error{
	"proxy-connect-timeout":       setConnectTimeout,
	"proxy-send-timeout":          setSendTimeout,
	"proxy-read-timeout":          setReadTimeout,
	"proxy-body-size":             setBodySize,
	"proxy-next-upstream":         setNextUpstream,
	"proxy-next-upstream-tries":   setTries,
	"proxy-next-upstream-timeout": setTriesTimeout,
	"load-balance":                setBalance,
	"upstream-hash-by":            setHashBy,
}

// override is one setting of an object with a value that is known to be good.
type override struct{ name, value string }

// checkSetting reports whether value is good for the setting name.
func checkSetting(name, value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return errors.New("has a control character")
	}
	var scratch route.Policy
	return settings[name](&scratch, value)
}

// defaults are the policy that holds where no annotation says otherwise.
type defaults struct {
	policy             route.Policy
	retryNonIdempotent bool // added to whatever proxy-next-upstream says
}

// with returns the policy of an object with the given overrides.
func (d defaults) with(overrides []override) *route.Policy {
	p := d.policy
	for _, o := range overrides {
		// The value was checked when the object was read.
		_ = settings[o.name](&p, o.value)
	}
	if d.retryNonIdempotent {
		p.RetryOn |= route.RetryNonIdempotent
	}
	if len(p.HashBy) != 0 {
		p.Balance = route.Hash // as in ingress-nginx, it wins over load-balance
	}
	return &p
}

func setConnectTimeout(p *route.Policy, v string) error {
	return setDuration(&p.ConnectTimeout, v, time.Second/1000)
}

func setSendTimeout(p *route.Policy, v string) error {
	return setDuration(&p.SendTimeout, v, time.Second/1000)
}

func setReadTimeout(p *route.Policy, v string) error {
	return setDuration(&p.ReadTimeout, v, time.Second/1000)
}

func setTriesTimeout(p *route.Policy, v string) error { return setDuration(&p.TriesTimeout, v, 0) }

// durationMax is a year: more is a mistake and would overflow in timers.
const durationMax = 365 * 24 * time.Hour

func setDuration(to *time.Duration, value string, least time.Duration) error {
	d, ok := parseDuration(value)
	if !ok || d < least || d > durationMax {
		low := "0 (no limit)"
		if least > 0 {
			low = "more than 0"
		}
		return fmt.Errorf("want seconds (60) or a time with units ms, s, m, h, d (90s, 1m30s), %s and at most 365d", low)
	}
	*to = d
	return nil
}

var durationUnits = []struct {
	suffix string
	unit   time.Duration
}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}}

// parseDuration reads seconds without unit, or numbers with nginx's units.
func parseDuration(s string) (time.Duration, bool) {
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	var total time.Duration
	for s != "" {
		digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
		n, err := strconv.ParseUint(s[:digits], 10, 31)
		if err != nil {
			return 0, false
		}
		s = s[digits:]
		found := false
		for _, u := range durationUnits {
			if rest, ok := strings.CutPrefix(s, u.suffix); ok && (rest == "" || rest[0] >= '0' && rest[0] <= '9') {
				if n > uint64(durationMax/u.unit) {
					return 0, false
				}
				total, s, found = total+time.Duration(n)*u.unit, rest, true
				break
			}
		}
		if !found || total > durationMax {
			return 0, false
		}
	}
	return total, total > 0
}

func setBodySize(p *route.Policy, v string) error {
	digits := len(v) - len(strings.TrimLeft(v, "0123456789"))
	n, err := strconv.ParseInt(v[:digits], 10, 64)
	shift, ok := map[string]uint{"": 0, "b": 0, "k": 10, "m": 20, "g": 30}[strings.ToLower(v[digits:])]
	if err != nil || !ok || n > (1<<62)>>shift {
		return errors.New("want bytes, or a number with k, m or g (8m); 0 means no limit")
	}
	p.BodyBytesMax = n << shift
	return nil
}

func setTries(p *route.Policy, v string) error {
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil || n > 1000 {
		return errors.New("want a number from 0 (no limit) to 1000")
	}
	p.Tries = int(n)
	return nil
}

func setBalance(p *route.Policy, v string) error {
	switch v {
	case "round_robin":
		p.Balance = route.RoundRobin
	case "ewma":
		p.Balance = route.EWMA
	default:
		return errors.New("want round_robin or ewma")
	}
	return nil
}

func setHashBy(p *route.Policy, v string) error {
	parts, err := parseHashKey(v)
	if err != nil {
		return err
	}
	p.HashBy = parts
	return nil
}

var retryTokens = map[string]route.RetryOn{
	"error": route.RetryError, "timeout": route.RetryTimeout, "invalid_header": route.RetryInvalidHead,
	"http_500": route.Retry500, "http_502": route.Retry502, "http_503": route.Retry503, "http_504": route.Retry504,
	"http_403": route.Retry403, "http_404": route.Retry404, "http_429": route.Retry429,
	"non_idempotent": route.RetryNonIdempotent,
}

func setNextUpstream(p *route.Policy, v string) error {
	var on route.RetryOn
	tokens := strings.Fields(v)
	for _, token := range tokens {
		if token == "off" {
			p.RetryOn = 0
			return nil
		}
		c, ok := retryTokens[token]
		if !ok {
			return fmt.Errorf("unknown condition %q; want error, timeout, invalid_header, "+
				"http_500, http_502, http_503, http_504, http_403, http_404, http_429, non_idempotent or off", token)
		}
		on |= c
	}
	if len(tokens) == 0 {
		return errors.New("want one condition or more, such as \"error timeout\", or off")
	}
	p.RetryOn = on
	return nil
}
