// Package netwatch follows this node's links, routes, addresses and neighbours, and
// tells which pod addresses are on this node and which of them are cut off.
//
// A pod is known by the link that leads to it: that of a route to its address
// alone, or the port of a bridge behind which its hardware address was last seen.
// When that link or route disappears the pod is lost, often long before the API
// server says so. What the node does not know it says nothing about: an address on
// another node is neither local nor lost.
//
// The kernel tells all of this to anybody (rtnetlink); no capability is needed.
package netwatch
