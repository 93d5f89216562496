// What an error of this program is to a caller of the CSI driver: the one place that decides it.
//
// A caller reads two things out of a code: what was wrong, by the table of the RPC, and whether the
// call may have had its effect. Of Cancelled, DeadlineExceeded, Unavailable, ResourceExhausted and
// Aborted callers take it that it may have, and of all others that it has not. So an error that is
// maybe applied never has one of the others, and a code that says something about the caller's
// secrets or about the driver's abilities is never given for what a node could not do.
// Source: CSI spec v1.13.0, "Error Scheme"; kubernetes pkg/volume/csi/csi_client.go@v1.36
// (isFinalError).
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "base/result.h"

namespace volumed {

// The longest message of a status, in bytes: it goes in a header, for which clients have 8 KiB.
inline constexpr size_t kMostCsiMessage = 2048;

// Threads: any, for all; they are pure.
//
// The code for a caller. `kUnimplemented` of an error, which is a kernel or a filesystem that lacks
// something, is FailedPrecondition.
Code CsiCodeOf(Code code, Outcome outcome);

// The status for a caller: CsiCodeOf(), no details, and a message that is printable and of
// kMostCsiMessage bytes at most. It says if the call may have had its effect. OK for OK.
grpc::Status CsiStatusOf(const Status& status);

// The answer to an RPC that no handler serves. `rpc` is its path: "/csi.v1.Node/NodeStageVolume".
grpc::Status CsiNotServed(const std::string& rpc, const std::string& why);

}  // namespace volumed
