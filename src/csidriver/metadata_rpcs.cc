#include "csidriver/metadata_rpcs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "csi.pb.h"
#include "snapshot/changed_blocks.h"

namespace volumed {
namespace {

using ::csi::v1::GetMetadataAllocatedRequest;
using ::csi::v1::GetMetadataAllocatedResponse;
using ::csi::v1::GetMetadataDeltaRequest;
using ::csi::v1::GetMetadataDeltaResponse;

using SharedMetadataParts = std::shared_ptr<const MetadataRpcParts>;

// A message of so many has less than 100 KiB.
constexpr int32_t kMostRangesOfMessage = 4096;

void NameSnapshots(const GetMetadataAllocatedRequest& request, ChangedBlocksQuery& query) {
  query.target = request.snapshot_id();
}

void NameSnapshots(const GetMetadataDeltaRequest& request, ChangedBlocksQuery& query) {
  query.base = request.base_snapshot_id();
  query.target = request.target_snapshot_id();
}

// One call, from part to part. Threads: one at a time: executor threads look for a part, and the
// control thread is told that it was taken.
template <typename Request, typename Response>
class MetadataWalk : public std::enable_shared_from_this<MetadataWalk<Request, Response>> {
 public:
  MetadataWalk(SharedMetadataParts shared, const CsiStreamRpc<Request, Response>& stream)
      : shared_(std::move(shared)), stream_(stream) {
    const Request& request = stream_.request();
    NameSnapshots(request, query_);
    query_.from = request.starting_offset();
    query_.most = kMostRangesOfMessage;
    const int32_t asked = request.max_results();
    most_ = static_cast<size_t>(asked == 0 ? kMostRangesOfMessage
                                           : std::min(asked, kMostRangesOfMessage));
  }

  void GoOn() {
    if (stream_.is_given_up()) return GiveUp();
    shared_->scheduler.RunBlocking([self = this->shared_from_this()] { self->Look(); });
  }

 private:
  void Look() {
    if (sent_ < part_.ranges.size()) {
      const Status there = CheckNotDeleted(shared_->snapshots, query_);
      if (!there.ok()) return stream_.Finish(there);
      return SendSome();
    }
    CallOptions call;
    call.deadline = Deadline::After(shared_->scheduler.clock(), shared_->part_deadline);
    Result<ChangedBlocks> part =
        FindChangedBlocks(shared_->snapshots, shared_->volumes, query_, call);
    if (!part.ok()) return stream_.Finish(part.error());
    part_ = *std::move(part);
    sent_ = 0;
    query_.from = part_.next;
    if (part_.ranges.empty() && !part_.is_last()) return GoOn();
    if (part_.ranges.empty() && has_sent_) return stream_.Finish(OkStatus());
    SendSome();
  }

  void SendSome() {
    Fill();
    has_sent_ = true;
    const bool is_last = sent_ == part_.ranges.size() && part_.is_last();
    stream_.Send([self = this->shared_from_this(), is_last](bool taken) {
      if (!taken) return self->GiveUp();
      if (is_last) return self->stream_.Finish(OkStatus());
      self->GoOn();
    });
  }

  void Fill() {
    Response& response = stream_.response();
    response.Clear();
    response.set_block_metadata_type(::csi::v1::VARIABLE_LENGTH);
    response.set_volume_capacity_bytes(part_.volume_bytes);
    for (size_t left = most_; left > 0 && sent_ < part_.ranges.size(); --left) {
      const ByteRange& range = part_.ranges[sent_++];
      ::csi::v1::BlockMetadata& block = *response.add_block_metadata();
      block.set_byte_offset(range.offset);
      block.set_size_bytes(range.bytes);
    }
  }

  // Of a call that has ended already this says nothing to anybody.
  void GiveUp() {
    stream_.Finish(Error::NotApplied(Code::kCancelled, "the caller takes no more of the answer"));
  }

  const SharedMetadataParts shared_;
  const CsiStreamRpc<Request, Response> stream_;
  ChangedBlocksQuery query_;  // of the part after `part_`
  size_t most_ = 0;           // ranges of a message
  // What was found last, of which a message may want a few ranges alone: to look for the others
  // anew takes as long as to look for all.
  ChangedBlocks part_;
  size_t sent_ = 0;  // ranges of it
  bool has_sent_ = false;
};

template <typename Request, typename Response>
void AddWalk(CsiHandlers& handlers, const SharedMetadataParts& shared) {
  handlers.AddStream<Request, Response>([shared](const CsiStreamRpc<Request, Response>& stream) {
    std::make_shared<MetadataWalk<Request, Response>>(shared, stream)->GoOn();
  });
}

}  // namespace

void AddMetadataRpcs(CsiHandlers& handlers, const MetadataRpcParts& parts) {
  const auto shared = std::make_shared<const MetadataRpcParts>(parts);
  AddWalk<GetMetadataAllocatedRequest, GetMetadataAllocatedResponse>(handlers, shared);
  AddWalk<GetMetadataDeltaRequest, GetMetadataDeltaResponse>(handlers, shared);
}

}  // namespace volumed
