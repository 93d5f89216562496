// The part of os/worker_codec.h that is about composite requests. Pure.
#pragma once

#include <vector>

#include "os/kernel.h"
#include "worker.pb.h"

namespace volumed::worker_codec {

// Any request or answer as a message, in worker_codec_requests.cc and worker_codec_answers.cc: a
// batch holds them.
void WriteRequest(const AnyRequest& from, worker::Request& to);
Result<AnyRequest> ReadRequest(const worker::Request& from);
void WriteAnswer(const Result<AnyAnswer>& from, worker::Answer& to);
Result<AnyAnswer> ReadAnswer(const worker::Answer& from);

using PayloadFiles = google::protobuf::RepeatedPtrField<worker::PayloadFile>;
void Write(const std::vector<PayloadFile>& from, PayloadFiles* to);
std::vector<PayloadFile> Read(const PayloadFiles& from);

void Fill(const EnsureVolume& from, worker::Request& to);
void Fill(const RemoveVolume& from, worker::Request& to);
void Fill(const PrepareSubPath& from, worker::Request& to);
void Fill(const RemoveSubPaths& from, worker::Request& to);
void Fill(const RemoveSkeleton& from, worker::Request& to);
void Fill(const Batch& from, worker::Request& to);
EnsureVolume Read(const worker::EnsureVolume& from);
RemoveVolume Read(const worker::RemoveVolume& from);
PrepareSubPath Read(const worker::PrepareSubPath& from);
RemoveSubPaths Read(const worker::RemoveSubPaths& from);
RemoveSkeleton Read(const worker::RemoveSkeleton& from);
// Errors: DataLoss, not applied, for an item that is no request.
Result<Batch> Read(const worker::Batch& from);

void Fill(const EnsuredVolume& from, worker::Answer& to);
void Fill(const BatchAnswer& from, worker::Answer& to);
EnsuredVolume Read(const worker::EnsuredVolume& from);
BatchAnswer Read(const worker::BatchAnswer& from);

}  // namespace volumed::worker_codec
