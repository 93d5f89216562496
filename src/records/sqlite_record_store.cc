#include "records/sqlite_record_store.h"

#include <chrono>
#include <optional>
#include <utility>

#include "records/record_database.h"

namespace volumed {
namespace {

// How long a disk that has room again may be taken for a full one.
constexpr std::chrono::seconds kLookForRoom(5);

Error Closed() { return Error::NotApplied(Code::kUnavailable, "the record store is closed"); }

}  // namespace

// Lives on the stack of its caller, who waits for `done`.
struct SqliteRecordStore::Request {
  std::optional<RecordChange> change;
  std::optional<Status> room;  // set before: look at the room
  std::string load_kind;       // with neither
  std::optional<Result<LoadedRecords>> loaded;

  CondVar answered;
  bool done = false;  // guarded by the store's mutex
};

Result<std::unique_ptr<SqliteRecordStore>> SqliteRecordStore::Open(
    const SqliteRecordStoreOptions& options) {
  ASSIGN_OR_RETURN(auto database,
                   RecordDatabase::Open({options.directory, options.migrations, options.vfs},
                                        options.ballast_bytes));
  return std::unique_ptr<SqliteRecordStore>(new SqliteRecordStore(std::move(database)));
}

SqliteRecordStore::SqliteRecordStore(std::unique_ptr<RecordDatabase> database)
    : database_(std::move(database)) {
  {
    MutexLock lock(mu_);
    on_ballast_ = database_->on_ballast();
    stats_.quarantined = database_->quarantined();
  }
  MutexLock lock(close_mu_);
  thread_ = std::thread([this] { Run(); });
}

SqliteRecordStore::~SqliteRecordStore() { Close(); }

void SqliteRecordStore::Close() {
  MutexLock one(close_mu_);
  {
    MutexLock lock(mu_);
    closing_ = true;
    work_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

Status SqliteRecordStore::Put(const Record& record, Durability durability) {
  Request request;
  request.change = RecordChange{&record, /*remove=*/false, durability, {}};
  if (!Submit(request)) return Closed();
  return std::move(request.change->status);
}

Status SqliteRecordStore::Remove(const std::string& kind, const std::string& key,
                                 Durability durability) {
  const Record record{kind, key, 0, {}};
  Request request;
  request.change = RecordChange{&record, /*remove=*/true, durability, {}};
  if (!Submit(request)) return Closed();
  return std::move(request.change->status);
}

Result<LoadedRecords> SqliteRecordStore::Load(const std::string& kind) {
  Request request;
  request.load_kind = kind;
  if (!Submit(request)) return Closed();
  return *std::move(request.loaded);
}

RecordStoreStats SqliteRecordStore::stats() const {
  MutexLock lock(mu_);
  return stats_;
}

bool SqliteRecordStore::on_ballast() const {
  MutexLock lock(mu_);
  return on_ballast_;
}

Status SqliteRecordStore::CheckRoom() {
  if (!on_ballast()) return OkStatus();
  Request request;
  request.room = OkStatus();
  if (!Submit(request)) return Closed();
  return *std::move(request.room);
}

bool SqliteRecordStore::Submit(Request& request) {
  MutexLock lock(mu_);
  if (closing_) return false;
  queue_.push_back(&request);
  if (queue_.size() == 1) work_.NotifyOne();
  while (!request.done) request.answered.Wait(mu_);
  return true;
}

// Until there is a request or the store closes; on ballast also to look for room.
void SqliteRecordStore::WaitForWork() {
  while (queue_.empty() && !closing_) {
    if (!on_ballast_) {
      work_.Wait(mu_);
    } else if (!work_.WaitFor(mu_, kLookForRoom)) {
      return;
    }
  }
}

void SqliteRecordStore::Run() {
  while (true) {
    std::vector<Request*> batch;
    bool nobody_waits = false;
    {
      MutexLock lock(mu_);
      WaitForWork();
      if (queue_.empty() && closing_) break;
      batch.swap(queue_);
    }
    if (batch.empty()) database_->NoticeRoom();
    Serve(batch);
    {
      MutexLock lock(mu_);
      nobody_waits = queue_.empty();
    }
    database_->CheckpointIfDue(nobody_waits);
    MutexLock lock(mu_);
    on_ballast_ = database_->on_ballast();
  }
  database_.reset();
}

// Callers that wait at the same time have no order among each other. So loads come first, then what
// needs no sync, and nobody waits for a sync that only another one has asked for. A request is not
// to be looked at once it is finished.
void SqliteRecordStore::Serve(const std::vector<Request*>& batch) {
  std::vector<Request*> looks;
  std::vector<Request*> loads;
  std::vector<Request*> unsynced;
  std::vector<Request*> synced;
  for (Request* request : batch) {
    if (request->room) {
      looks.push_back(request);
    } else if (!request->change) {
      loads.push_back(request);
    } else if (request->change->durability == Durability::kProcess) {
      unsynced.push_back(request);
    } else {
      synced.push_back(request);
    }
  }
  for (Request* request : looks) request->room = database_->CheckRoom();
  Finish(looks);
  for (Request* request : loads) request->loaded = database_->Load(request->load_kind);
  Finish(loads);
  ServeChanges(unsynced, Durability::kProcess);
  ServeChanges(synced, Durability::kPowerLoss);
}

void SqliteRecordStore::ServeChanges(const std::vector<Request*>& requests, Durability durability) {
  if (requests.empty()) return;
  std::vector<RecordChange*> changes;
  for (Request* request : requests) changes.push_back(&*request->change);
  database_->Apply(changes, durability);
  Finish(requests);
}

void SqliteRecordStore::Finish(const std::vector<Request*>& requests) {
  if (requests.empty()) return;
  MutexLock lock(mu_);
  stats_.commits = database_->commits();
  stats_.quarantined = database_->quarantined();
  on_ballast_ = database_->on_ballast();
  for (Request* request : requests) {
    if (request->change) {
      const bool ok = request->change->status.ok();
      if (!ok) ++stats_.failures;
      if (ok) ++(request->change->remove ? stats_.removes : stats_.puts);
    } else if (request->loaded && !request->loaded->ok()) {
      ++stats_.failures;
    }
    request->done = true;
    // Under the lock: the request is gone as soon as its caller can take it.
    request->answered.NotifyOne();
  }
}

}  // namespace volumed
