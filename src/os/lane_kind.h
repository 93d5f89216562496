// LaneKind: with what a request of the Kernel seam may hang, and so which workers do it, unless its
// caller names what that is (CallOptions::domain). Each request says it as `kLane`, without a
// default: who adds one has to decide whom it may hold up. Part of os/kernel_requests.h.
#pragma once

namespace volumed {

enum class LaneKind {
  kNoWorker,          // it cannot hang: the agent's own process answers
  kOwnFilesystem,     // the agent's own filesystem or memory, and briefly: the fast workers
  kWalks,             // likewise, but as long as a pod's tree, a program or a driver likes
  kDevice,            // the device that it names: each hangs for itself
  kDeviceIfExpected,  // a device if it names the one that it expects, else its own filesystem
  kOfItems,           // it is made of others: kWalks if one of these is, else its own filesystem
};

// What the type of a request says of itself; see LaneKindOf(const AnyRequest&) for one that is not
// known by its type.
template <typename Request>
constexpr LaneKind LaneKindOf(const Request& /*request*/) requires requires {
  Request::kLane;
}
{ return Request::kLane; }

}  // namespace volumed
