#include "unit/crash/crash_applied.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

#include "agent/apply_check.h"
#include "agent/command_admission.h"
#include "kube/decode.h"
#include "kube/prepare_for_create.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

const NodeName kNode("n1");
// The list that an answered command has delivered is heard before whatever its user does next.
constexpr auto kAnswerTakes = std::chrono::milliseconds(1);

// In memory if there is such a place: the walk makes it some thousand times.
std::string DirectoryOfThisProcess() {
  const fs::path base = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
  return base / ("volumed-crash-" + std::to_string(::getpid()));
}

void WriteRealFile(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!(file << content).flush()) throw std::logic_error("cannot write " + path);
}

std::map<std::string, std::string> ReadFiles(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

bool HasUid(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolume || kind == ObjectKind::kPersistentVolumeClaim;
}

std::optional<size_t> LastOf(const std::vector<UserCommand>& commands) {
  return commands.empty() ? std::nullopt : std::optional(commands.size() - 1);
}

}  // namespace

// ---- the world ----------------------------------------------------------------------------------

void CrashWorld::CommandApply(const std::string& manifest) {
  UserCommand command;
  command.kind = UserCommand::Kind::kApply;
  command.manifest = manifest;
  command.after = LastOf(commands);
  commands.push_back(command);
}

void CrashWorld::CommandDelete(const ObjectKey& object) {
  UserCommand command;
  command.kind = UserCommand::Kind::kDeleteObject;
  command.object = object;
  command.after = LastOf(commands);
  commands.push_back(command);
}

std::map<std::string, std::string> CrashWorld::ObjectFiles() const {
  if (!objects_directory.empty()) return ReadFiles(objects_directory);
  return object_files.value_or(std::map<std::string, std::string>());
}

void CrashWorld::WriteObjectFile(const std::string& file, const std::string& content) {
  if (!objects_directory.empty()) return WriteRealFile(objects_directory + "/" + file, content);
  object_files.value()[file] = content;
}

// ---- the agent's --------------------------------------------------------------------------------

CrashObjectDirectory::CrashObjectDirectory(CrashWorld& world, Scheduler& scheduler)
    : world_(world),
      scheduler_(scheduler),
      objects_(DirectoryOfThisProcess(), kNode, scheduler, "0.0.1") {
  const std::string directory = DirectoryOfThisProcess();
  fs::remove_all(directory);
  fs::create_directory(directory);
  for (const auto& [file, content] : world.object_files.value()) {
    WriteRealFile(directory + "/" + file, content);
  }
  world.objects_directory = directory;
}

CrashObjectDirectory::~CrashObjectDirectory() {
  world_.object_files = ReadFiles(world_.objects_directory);
  std::error_code ignored;
  fs::remove_all(std::exchange(world_.objects_directory, ""), ignored);
}

void CrashObjectDirectory::Apply(const std::string& manifest, const ObjectCatalog& catalog,
                                 VolumeManager& manager, std::function<void(Status)> answered) {
  ApplyWords words;
  for (DecodedObject& object : DecodeManifest("-", manifest).objects) {
    PrepareForCreate(object.object);
    words.objects.push_back(std::move(object.object));
  }
  const Status free = CheckNobodyElseHas(catalog, kNode, words.objects);
  if (!free.ok()) return answered(free.error());
  Result<ApplyCommand> admitted = AdmitApply(catalog, manager, kNode, std::move(words));
  if (!admitted.ok()) return answered(admitted.error());
  // A uid that can be told from others in what is compared.
  for (Object& object : admitted->objects) {
    const ObjectKey key = KeyOf(object);
    std::string& uid = MetaOf(object).uid;
    if (HasUid(key.kind) && uid.empty()) uid = world_.NewUid(key);
  }
  manager.object_commands().Number(
      [this, answered, command = std::make_shared<ApplyCommand>(*std::move(admitted))](
          const Result<uint64_t>& number) {
        if (!number.ok()) return answered(number.error());
        command->number = *number;
        scheduler_.RunBlocking([this, answered, command] {
          const Status stored = Store(std::move(*command));
          scheduler_.PostAfter(kAnswerTakes, [answered, stored] { answered(stored); });
        });
      });
}

Status CrashObjectDirectory::Store(ApplyCommand command) {
  const Result<std::vector<AppliedObject>> applied = objects_.Apply(std::move(command));
  return applied.ok() ? OkStatus() : Status(applied.error());
}

}  // namespace volumed
