// ManifestDirectory: whether what is there is the known directory, and what an absence in it
// proves.
#include <utility>

#include "kube/manifest_directory.h"

namespace volumed {
namespace {

constexpr char kOtherDirectory[] = "the directory is another one than the known one";
constexpr char kMountPoint[] =
    "the directory has no manifest, and one before it could not be opened: it may be the place "
    "where that one was mounted";
constexpr char kOlderState[] =
    "the directory is an older state of the known one: its disk has been put back";
constexpr char kEmpty[] = "the directory held no manifest at all when it was listed";

}  // namespace

std::string ManifestDirectory::WhyUnproven() const {
  if (overflowed_) return kEventsLost;
  return WhyOther();
}

bool ManifestDirectory::MayBeMountPoint() const { return !known_ && was_closed_ && is_empty_; }

std::string ManifestDirectory::WhyOther() const {
  if (in_known_) return "";
  if (MayBeMountPoint()) return kMountPoint;
  return known_ && now_ && IsOlderState(*known_, *now_) ? kOlderState : kOtherDirectory;
}

// Of an object that is absent when the directory is listed.
std::string ManifestDirectory::ListingUnproven(bool is_empty) const {
  if (std::string why = WhyUnproven(); !why.empty()) return why;
  if (listing_ == Listing::kOverflow) return kEventsLost;
  return listing_ == Listing::kFound && is_empty ? kEmpty : "";
}

// Everything that the directory has is known now, but for large files that wait for their turn.
void ManifestDirectory::FinishListing() {
  const bool waits = !large_.empty() || large_busy_ || !far_.Awaited().empty();
  if (waits || need_open_ || need_scan_) return;
  if (accepting_) {
    files_.Accept(*std::exchange(accepting_, std::nullopt));
    Adopt();
    complete_ = true;
    // That what is not there is gone says nothing of a file that is there and was not read.
    seen_ = seen_ || (not_read_.empty() && BusyFiles().empty());
  }
  if (!listed_) return;
  complete_ = true;
  if (!in_known_ && files_.AbsentObjects().empty() && MayAdopt()) Adopt();
  was_known_ = was_known_ || in_known_;
  // What has not been read may have anything, and so may the known directory while another one is
  // in its place.
  if (!seen_) seen_ = in_known_ && not_read_.empty() && BusyFiles().empty();
}

// A directory that has every object on record is known by them. With none on record, another one
// may be the mount point of a disk that is not mounted, and what was moved to that disk while no
// agent ran is in no list. So it counts only if the known one was seen to have nothing, and this
// one has something, or if nothing lasting is known of that one.
bool ManifestDirectory::MayAdopt() const {
  if (MayBeMountPoint()) return false;
  const bool is_lasting = known_ && known_->inode.has_value();
  return !is_lasting || had_objects_ || (was_known_ && files_.HasKnownObjects());
}

// That its entries change is no sign of another directory; that they are older than they were is
// one.
void ManifestDirectory::NoteChange(const Scanned& scanned) {
  if (!now_ || !now_->changed_unix_nanos) return;
  now_->changed_unix_nanos = scanned.changed_unix_nanos;
  if (in_known_) known_->changed_unix_nanos = scanned.changed_unix_nanos;
}

// What is there is the known directory from now on.
void ManifestDirectory::Adopt() {
  known_ = now_;
  in_known_ = now_.has_value();
}

}  // namespace volumed
