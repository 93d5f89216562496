// What the failure of an RPC means: whether it may have changed something, and whether the same
// call may be made again. This is the one place that decides it.
//
// Nothing here decides what to call next: after "maybe applied" only the same call or its inverse
// may follow, and CSI makes both harmless, for all its RPCs are idempotent.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "csi/rpc/csi_methods.h"
#include "csi/rpc/csi_redact.h"

namespace volumed {

enum class CsiRepeat {
  kAtOnce,  // once there is a connection: the driver has not seen the call, or the caller ended it
  kLater,   // after a back-off
  kNever,   // not before the driver has registered anew, and what it said it can do is asked again
};

// Threads: any, for all; they are pure.
//
// The code of a gRPC status that is not OK. A number that is no code is kUnknown.
Code CsiCode(int grpc_code);

// Whether the call may have changed something.
//
// A read-only RPC changes nothing. Of mutating ones, kubelet takes Cancelled, DeadlineExceeded,
// Unavailable, ResourceExhausted and Aborted as uncertain and all others as final; here Unknown,
// Internal and DataLoss are uncertain too, because a driver that answers one of these (a script
// that failed, a panic that was caught) cannot know how far it came. It costs at most one more call
// of the same kind or its inverse.
// Source: kubernetes pkg/volume/csi/csi_client.go@v1.36 (isFinalError); CSI spec v1.13.0, "Error
// Scheme".
Outcome CsiOutcome(CsiRpcKind kind, Code code);
CsiRepeat CsiRepeatOf(Code code);

// Error::About() of a call that never reached the driver: it is not applied whatever its code. If
// that was for want of a connection (kUnavailable), it may be repeated at once.
inline constexpr const char* kCsiNeverSent = "csi: never sent";

// Whether the same call may be made again after this error of a CSI call.
CsiRepeat CsiRepeatOf(const Error& error);

// How a call failed.
struct CsiFailure {
  Code code = Code::kUnknown;
  // Of the driver, as it came: any bytes, of any length, and secrets among them. Or of this side.
  std::string message;
  bool never_sent = false;  // then the message is of this side
};

// "hostpath.csi.k8s.io: NodeStageVolume: Internal: <message>", with the outcome of the tables
// above. The message has none of the secrets, is printable, and has 2 KiB at most; a driver
// that gave none gets the words "the driver gave no reason".
Error CsiError(std::string_view driver, const CsiMethod& method, const CsiFailure& failure,
               const CsiSecrets& secrets);

}  // namespace volumed
