// Calls of an RPC by its name, with JSON for the request and for the answer: for people who ask a
// driver by hand.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "csi/rpc/csi_channel.h"
#include "csi/rpc/csi_redact.h"

namespace volumed {

// The request that the JSON is, by protobuf's mapping; an empty text is an empty request. Field
// names are the proto's or JSON's. Threads: any. Errors, not applied: InvalidArgument; what is
// wrong is said without a word of the JSON, which may have secrets.
Result<std::unique_ptr<google::protobuf::Message>> CsiRequestFromJson(const CsiMethod& method,
                                                                      std::string_view json);
// The whole message on one line, with the proto's field names and those fields that are not set.
// Secrets are stripped nowhere: it is for what is kept. Errors, not applied: Internal, for texts
// that are no UTF-8.
Result<std::string> CsiJsonOf(const google::protobuf::Message& message);
// CsiJsonOf() of an answer that is shown: without the secrets, which a driver may have put into any
// text of it.
Result<std::string> CsiShownJsonOf(const google::protobuf::Message& answer,
                                   const CsiSecrets& secrets);
// The same of a stream, with how much of it was read: {"cut":true,"messages":64,"answer":{..}}.
// `stream`: null: the answer is none of a stream.
Result<std::string> CsiShownJsonOf(const google::protobuf::Message& answer,
                                   const CsiSecrets& secrets, const CsiStream* stream);

// The options with a stream, if the RPC answers by one and they have none.
CsiCallOptions WithStreamOf(const CsiMethod& method, CsiCallOptions options);

// Makes the call `rpc` (as FindCsiMethod() has it); the answer is shown. Threads and blocking: as
// CsiChannel::Perform(). Errors: those of the others; NotFound, not applied, for an RPC that there
// is not.
Result<std::string> CallCsiByName(CsiChannel& channel, std::string_view rpc, std::string_view json,
                                  const CsiCallOptions& options);

}  // namespace volumed
