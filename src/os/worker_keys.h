// WorkerKeys: the volumes that a worker is at work on, on a page of memory that it shares with its
// agent, so that no request costs a system call for them. The agent writes them there before it
// sends the request, and the worker takes them away before it answers. The page is a file, which is
// locked as long as the worker, or a tool of it, lives: an agent that comes later reads there what
// workers of one before it are still at.
//
// Keys are there as checksums: two keys with one sum would only wait for each other.
// Source: flock(2), mmap(2).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

// Threads: one at a time of each process. Blocks: never, if the directory is on a tmpfs.
class WorkerKeys {
 public:
  // A page for a worker that is about to be started: a new file in `directory`. Errors, not
  // applied: errno of the file.
  static Result<WorkerKeys> Create(const std::string& directory);
  // The page that this worker was started with, whose descriptor stays its caller's. Errors, not
  // applied: InvalidArgument for what is no such file.
  static Result<WorkerKeys> Inherit(int page);
  ~WorkerKeys();
  WorkerKeys(WorkerKeys&& other) noexcept;
  WorkerKeys& operator=(WorkerKeys&&) = delete;

  // The agent's: these keys and no others are this worker's from now on, for what `about` says to
  // people.
  void Write(const std::vector<std::string>& keys, const std::string& about);
  // It has none any more.
  void LetGo();

  // What the worker inherits: as long as any process has it, the file is locked. The agent closes
  // its own once the worker is started; its mapping locks nothing.
  int lock() const { return lock_.get(); }
  void CloseLock() { lock_.Reset(); }
  // The worker and its tools are dead.
  void RemoveFile();

 private:
  struct Page;

  WorkerKeys(std::string path, Descriptor lock, Page* page);

  std::string path_;  // empty in the worker
  Descriptor lock_;
  Page* page_;
};

// The keys of workers whose agent has ended. Threads: external lock. Blocks: never, on a tmpfs.
class KeysOfOthers {
 public:
  // Reads the directory; files whose workers are dead are removed. Errors: of the directory, not
  // applied.
  static Result<KeysOfOthers> Read(const std::string& directory);

  // Aborted, not applied, if a worker still has one of these keys. Costs a system call for each
  // worker that lived when this was read and has not been found dead since; nobody waits for one
  // that has none.
  Status Check(const std::vector<std::string>& keys);
  // Workers that live and have a key. Costs as Check().
  int Busy();

 private:
  void DropDead();

  std::map<std::string, Descriptor> files_;  // by path
};

// Who may have a key: one call at a time of this agent, or a worker of one before it.
// Threads: external lock. Blocks: never, on a tmpfs.
class TakenKeys {
 public:
  void SetOthers(KeysOfOthers others) { others_ = std::move(others); }
  // All of them or none, for what `about` says to people. Errors: Aborted, not applied, if one is
  // taken.
  Status Take(const std::vector<std::string>& keys, const std::string& about);
  void GiveBack(const std::vector<std::string>& keys);
  int BusyOthers() { return others_.Busy(); }

 private:
  KeysOfOthers others_;
  std::map<std::string, std::string> own_;  // with what for
};

}  // namespace volumed
