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
  std::vector<RecordChange> changes;  // all of one durability
  std::optional<Status> room;         // set before: look at the room
  std::optional<Status> accept;       // set before: accept the records, of a volume or of all
  std::optional<std::string> accept_volume;
  std::optional<std::vector<QuarantinedRecord>> in_place;
  std::string load_kind;  // with none of these
  std::optional<Result<LoadedRecords>> loaded;

  CondVar answered;
  bool done = false;  // guarded by the store's mutex
};

Result<std::unique_ptr<SqliteRecordStore>> SqliteRecordStore::Open(
    const SqliteRecordStoreOptions& options) {
  RecordDatabaseOptions database_options;
  database_options.file = {options.directory, options.migrations, options.vfs};
  database_options.ballast_bytes = options.ballast_bytes;
  database_options.place = options.place;
  database_options.sign_of_use = options.sign_of_use;
  database_options.now_unix_ms = options.now_unix_ms;
  database_options.expendable_kinds = options.expendable_kinds;
  database_options.renewed_kinds = options.renewed_kinds;
  database_options.teardown_kinds = options.teardown_kinds;
  ASSIGN_OR_RETURN(auto database, RecordDatabase::Open(database_options));
  return std::unique_ptr<SqliteRecordStore>(
      new SqliteRecordStore(std::move(database), options.idle));
}

SqliteRecordStore::SqliteRecordStore(std::unique_ptr<RecordDatabase> database, Duration idle)
    : idle_(idle), database_(std::move(database)) {
  {
    MutexLock lock(mu_);
    TakeState();
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
  request.changes.push_back({&record, /*remove=*/false, durability, {}});
  if (!Submit(request)) return Closed();
  return std::move(request.changes.front().status);
}

Status SqliteRecordStore::Remove(const std::string& kind, const std::string& key,
                                 Durability durability) {
  const Record record{kind, key, 0, {}};
  Request request;
  request.changes.push_back({&record, /*remove=*/true, durability, {}});
  if (!Submit(request)) return Closed();
  return std::move(request.changes.front().status);
}

std::vector<Status> SqliteRecordStore::Write(const std::vector<RowChange>& changes,
                                             Durability durability) {
  if (changes.empty()) return {};
  Request request;
  request.changes.reserve(changes.size());
  for (const RowChange& change : changes) {
    request.changes.push_back({&change.record, change.remove, durability, {}});
  }
  if (!Submit(request)) return std::vector<Status>(changes.size(), Closed());
  std::vector<Status> answers;
  answers.reserve(changes.size());
  for (RecordChange& change : request.changes) answers.push_back(std::move(change.status));
  return answers;
}

Result<LoadedRecords> SqliteRecordStore::Load(const std::string& kind) {
  Request request;
  request.load_kind = kind;
  if (!Submit(request)) return Closed();
  return *std::move(request.loaded);
}

Status SqliteRecordStore::QuarantineInPlace(const std::vector<QuarantinedRecord>& rows) {
  Request request;
  request.in_place = rows;
  return Submit(request) ? OkStatus() : Status(Closed());
}

RecordStoreStats SqliteRecordStore::stats() const {
  MutexLock lock(mu_);
  return stats_;
}

RecordsRecovery SqliteRecordStore::recovery() const {
  MutexLock lock(mu_);
  return recovery_;
}

Status SqliteRecordStore::AcceptRecords(const std::optional<std::string>& volume) {
  if (volume && volume->find('\n') != std::string::npos) {
    return Error::NotApplied(Code::kInvalidArgument, "the name of a volume has one line");
  }
  Request request;
  request.accept = OkStatus();
  request.accept_volume = volume;
  if (!Submit(request)) return Closed();
  return *std::move(request.accept);
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

// Waits until there is a request or the store closes. While the ballast is spent it also looks for
// room, and while there is a log it waits until nobody has written for a while.
void SqliteRecordStore::WaitForWork() {
  while (queue_.empty() && !closing_) {
    if (!on_ballast_ && !has_log_) {
      work_.Wait(mu_);
    } else if (!work_.WaitFor(mu_, on_ballast_ ? Duration(kLookForRoom) : idle_)) {
      return;
    }
  }
}

void SqliteRecordStore::TakeState() {
  stats_.commits = database_->commits();
  stats_.quarantined = database_->quarantined();
  on_ballast_ = database_->on_ballast();
  has_log_ = database_->has_log();
  if (recovery_ != database_->recovery()) recovery_ = database_->recovery();
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
    if (batch.empty()) {
      database_->NoticeRoom();
      database_->CheckpointWhenIdle();
    }
    Serve(batch);
    {
      MutexLock lock(mu_);
      nobody_waits = queue_.empty();
    }
    database_->CheckpointIfDue(nobody_waits);
    MutexLock lock(mu_);
    TakeState();
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
    if (request->room || request->accept || request->in_place) {
      looks.push_back(request);
    } else if (request->changes.empty()) {
      loads.push_back(request);
    } else if (request->changes.front().durability == Durability::kProcess) {
      unsynced.push_back(request);
    } else {
      synced.push_back(request);
    }
  }
  for (Request* request : looks) {
    if (request->room) request->room = database_->CheckRoom();
    if (request->accept) request->accept = database_->AcceptRecords(request->accept_volume);
    if (request->in_place) database_->QuarantineInPlace(*request->in_place);
  }
  Finish(looks);
  for (Request* request : loads) request->loaded = database_->Load(request->load_kind);
  Finish(loads);
  ServeChanges(unsynced, Durability::kProcess);
  ServeChanges(synced, Durability::kPowerLoss);
}

void SqliteRecordStore::ServeChanges(const std::vector<Request*>& requests, Durability durability) {
  if (requests.empty()) return;
  std::vector<RecordChange*> changes;
  for (Request* request : requests) {
    for (RecordChange& change : request->changes) changes.push_back(&change);
  }
  database_->Apply(changes, durability);
  Finish(requests);
}

void SqliteRecordStore::Finish(const std::vector<Request*>& requests) {
  if (requests.empty()) return;
  MutexLock lock(mu_);
  TakeState();
  for (Request* request : requests) {
    for (const RecordChange& change : request->changes) {
      const bool ok = change.status.ok();
      if (!ok) ++stats_.failures;
      if (ok) ++(change.remove ? stats_.removes : stats_.puts);
    }
    if (request->loaded && !request->loaded->ok()) {
      ++stats_.failures;
    }
    request->done = true;
    // The notification is made under the lock, because the request is gone as soon as its caller
    // can take the lock.
    request->answered.NotifyOne();
  }
}

}  // namespace volumed
