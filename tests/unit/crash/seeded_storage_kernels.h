// Kernels that do not tell all of what a storage is.
#pragma once

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "unit/crash/crash_pools.h"
#include "unit/crash/seeded_kernels.h"

namespace volumed {

// Of what storage is, some is not told.
class BlindStorageKernel : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = real_.Do(request, options);
    if (answer.ok()) {
      if (auto* identity = std::get_if<StorageIdentity>(&*answer)) Hide(*identity);
    }
    return answer;
  }

 private:
  virtual void Hide(StorageIdentity& identity) = 0;
};

// Nobody sees what contains a directory.
class FlatStorageKernel final : public BlindStorageKernel {
 public:
  using BlindStorageKernel::BlindStorageKernel;

 private:
  void Hide(StorageIdentity& identity) override { identity.within.clear(); }
};

// Nobody sees whose a directory is.
class UnmarkedStorageKernel final : public BlindStorageKernel {
 public:
  using BlindStorageKernel::BlindStorageKernel;

 private:
  void Hide(StorageIdentity& identity) override { identity.owner.clear(); }
};

// Nobody sees that two devices are one storage, nor who has the other one.
class TwinlessStorageKernel final : public BlindStorageKernel {
 public:
  using BlindStorageKernel::BlindStorageKernel;

 private:
  void Hide(StorageIdentity& identity) override {
    identity.users.clear();
    const auto is_number = [](const std::string& key) {
      return key.starts_with("dev:") || key.starts_with("fs:");
    };
    std::erase_if(identity.own, [&](const std::string& key) { return !is_number(key); });
  }
};

// No device says what lasts of it.
class AnonymousDeviceKernel final : public BlindStorageKernel {
 public:
  using BlindStorageKernel::BlindStorageKernel;

 private:
  void Hide(StorageIdentity& identity) override { std::erase_if(identity.own, IsLastingKey); }
};

// Every directory is like every other one.
class UndistinguishedStorageKernel final : public BlindStorageKernel {
 public:
  using BlindStorageKernel::BlindStorageKernel;

 private:
  void Hide(StorageIdentity& identity) override { identity.object = {}; }
};

// Looks for nothing that is not at its path any more.
class IncuriousKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* identify = std::get_if<IdentifyStorage>(&request);
    const bool looks = identify != nullptr && identify->look_for.inode != 0;
    return looks ? AnyAnswer(StorageIdentity{}) : PassingKernel::Do(request, options);
  }
};

// Deletes a pool's volume as soon as a command has deleted its claim, whoever has it.
class UnguardedPoolKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = PassingKernel::Do(request, options);
    const auto volume = PoolVolumeNamed(world_, kCrashPoolVolume);
    if (deleted_ || !volume || world_.kernel->crashed() || !IsClaimDeleted()) return answer;
    deleted_ = true;
    (void)real_.Do(RemoveFile{PoolImageOf(volume->id)}, options);
    return answer;
  }

 private:
  bool IsClaimDeleted() const {
    return std::any_of(
        world_.commands.begin(), world_.commands.end(), [](const UserCommand& command) {
          return command.acknowledged && command.kind == UserCommand::Kind::kDeleteObject &&
                 command.object.kind == ObjectKind::kPersistentVolumeClaim;
        });
  }
  bool deleted_ = false;
};

}  // namespace volumed
