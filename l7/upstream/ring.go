package upstream

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// pointsPerPeer is ketama's: 160 points keep the shares within about 8 %.
const pointsPerPeer = 160

// ring is a ketama ring: of n peers, one that comes or goes moves 1/n of the
// keys. It is built when the first hashed request follows a change.
type ring struct{ points []point }

type point struct {
	hash uint64
	peer *Peer
}

func (r *ring) build(peers []*Peer) {
	r.points = make([]point, 0, len(peers)*pointsPerPeer)
	for _, p := range peers {
		addr := p.Endpoint.Addr.Addr().As16()
		var key [22]byte
		copy(key[:], addr[:])
		binary.BigEndian.PutUint16(key[16:], p.Endpoint.Addr.Port())
		for i := range uint32(pointsPerPeer) {
			binary.BigEndian.PutUint32(key[18:], i)
			r.points = append(r.points, point{HashKey(HashSeed, key[:]), p})
		}
	}
	slices.SortFunc(r.points, func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
}

// pickHash takes the first usable peer clockwise from hash.
func (r *tier) pickHash(hash uint64, tried []*Peer, now int64) *Peer {
	if r.ring.points == nil && len(r.peers) > 0 {
		r.ring.build(r.peers)
	}
	points := r.ring.points
	start, _ := slices.BinarySearchFunc(points, hash, func(p point, h uint64) int { return cmp.Compare(p.hash, h) })
	for i := range points {
		j := start + i
		if j >= len(points) {
			j -= len(points)
		}
		if p := points[j].peer; p.usable(tried, now, false) {
			return p
		}
	}
	return nil
}

// HashSeed starts a key's hash.
const HashSeed uint64 = 14695981039346656037

// HashKey adds b to the hash h: FNV-1a, then mixed so that keys that differ in
// their last byte spread over the ring. It is the same on every node.
func HashKey(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
