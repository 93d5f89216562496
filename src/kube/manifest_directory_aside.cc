// ManifestDirectory: files that are read beside the others, for they are large or lie elsewhere.
#include <malloc.h>
#include <sys/inotify.h>

#include <utility>

#include "kube/manifest_directory.h"

namespace volumed {

// ---- large files --------------------------------------------------------------------------------

void ManifestDirectory::StartLarge() {
  auto next = large_.extract(large_.begin());
  large_file_ = std::move(next.key());
  large_look_ = std::move(next.mapped());
  ScanRequest request = MakeRequest(/*whole=*/false);
  request.files = {large_file_};
  Run<Scanned>(
      large_busy_, [request = std::move(request)] { return Scan(request); },
      &ManifestDirectory::OnLargeRead);
}

void ManifestDirectory::OnLargeRead(Scanned scanned) {
  DrainEvents();
  const std::string file = std::exchange(large_file_, {});
  if (watched_ && *watched_ == scanned.inode) {
    if (scanned.moved) {
      need_open_ = true;
      return;
    }
    // Else another reading is to come, of what it is now.
    const bool is_new =
        dirty_.count(file) == 0 && reading_.count(file) == 0 && large_.count(file) == 0;
    large_look_.at = scanned.at;
    if (is_new && scanned.scan.readings.size() == 1) {
      ApplyReading(std::move(scanned.scan.readings.front()), large_look_);
    }
    FinishListing();
    Deliver();
  }
  // What decoding took is given back: the heap of the thread that decoded would keep it.
  scheduler_.RunBlocking([] { ::malloc_trim(0); });
}

// ---- files elsewhere ----------------------------------------------------------------------------

FarManifests::Hooks ManifestDirectory::FarHooks() {
  FarManifests::Hooks hooks;
  hooks.reader = [this](const std::string& file) {
    ScanRequest request = MakeRequest(/*whole=*/false);
    return [file, request = std::move(request), read = seams_.read_far] {
      FarAnswer answer;
      answer.inode = request.inode;
      const Result<OpenDirectory> open = OpenDirectoryAt(request.directory);
      answer.moved = !open.ok() || open->inode != request.inode;
      if (!answer.moved) {
        answer.scan =
            ReadFarManifest(request.directory, open->fd, file, request.options.node_name, read);
      }
      return answer;
    };
  };
  hooks.answered = [this](const std::string& file, ManifestLook look, FarAnswer answer) {
    OnFarRead(file, std::move(look), std::move(answer));
  };
  hooks.unanswered = [this](const std::string& file, const ManifestLook& look, std::string why) {
    OnFarUnanswered(file, look, std::move(why));
  };
  return hooks;
}

void ManifestDirectory::OnFarRead(const std::string& file, ManifestLook look, FarAnswer answer) {
  DrainEvents();
  if (!watched_) return;
  if (answer.moved) need_open_ = true;
  if (*watched_ != answer.inode || answer.moved) {
    dirty_.insert(file);
    return Work();
  }
  // Else another reading is to come, of what it is now.
  const bool is_new = dirty_.count(file) == 0 && reading_.count(file) == 0;
  if (is_new && answer.scan.readings.size() == 1) {
    // It is as new as this moment, whenever it was asked for.
    look.scan = BeginScan(scheduler_.clock().Now());
    if (std::string why = WhyUnproven(); !why.empty()) look.unproven = std::move(why);
    ApplyReading(std::move(answer.scan.readings.front()), std::move(look));
    dirty_.merge(watches_.SetTargets({file}, answer.scan.targets));
  }
  FinishListing();
  ArmRetry();
  Deliver();
  Work();
}

void ManifestDirectory::OnFarUnanswered(const std::string& file, const ManifestLook& look,
                                        std::string why) {
  ApplyReading(Unanswered(file, std::move(why)), look);
  FinishListing();
  Deliver();
  Work();
}

ManifestReading ManifestDirectory::Unanswered(const std::string& file, std::string why) {
  ManifestReading reading;
  reading.file = file;
  reading.what = ManifestReading::What::kUnreadable;
  reading.error = std::move(why);
  return reading;
}

// ---- files that are not read --------------------------------------------------------------------

void ManifestDirectory::NoteUnread(const ManifestEvent& event) {
  const bool came = (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
  const bool went = (event.mask & (IN_DELETE | IN_MOVED_FROM)) != 0;
  const bool is_directory = (event.mask & IN_ISDIR) != 0;
  if (!(came || went) || is_directory || !IsUnreadName(event.name)) return;
  if (busy_ && unread_news_.size() < kMaxUnreadNames) unread_news_[event.name] = came;
  if (went) unread_.erase(event.name);
  if (came && unread_.size() < kMaxUnreadNames) unread_.insert(event.name);
}

void ManifestDirectory::TakeUnread(const std::vector<std::string>& listed) {
  unread_ = {listed.begin(), listed.end()};
  for (const auto& [name, is_there] : std::exchange(unread_news_, {})) {
    if (is_there) {
      unread_.insert(name);
    } else {
      unread_.erase(name);
    }
  }
}

}  // namespace volumed
