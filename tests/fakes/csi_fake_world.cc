#include "fakes/csi_fake_world.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/descriptor.h"
#include "integration/loop_device.h"

namespace volumed {

// Found by the type's own namespace alone.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CsiFakeVolume, name, size_bytes, nodes, staged,
                                                published, elsewhere)

namespace {

namespace fs = std::filesystem;
using RpcStatus = grpc::Status;
using grpc::StatusCode;

constexpr char kOther[] = "lie-other";  // the volume of "other-volume"

RpcStatus Failed(const std::string& what) {
  return {StatusCode::INTERNAL, what + ": " + std::strerror(errno)};
}

bool Contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

RpcStatus Bind(const std::string& from, const std::string& at, bool readonly) {
  if (::mount(from.c_str(), at.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return Failed("bind " + at);
  if (!readonly) return RpcStatus::OK;
  constexpr unsigned long kReadOnly = MS_REMOUNT | MS_BIND | MS_RDONLY;
  return ::mount(nullptr, at.c_str(), nullptr, kReadOnly, nullptr) == 0 ? RpcStatus::OK
                                                                        : Failed("remount " + at);
}

// So many layers; -1: all.
RpcStatus Unmount(const std::string& path, int layers) {
  for (int left = layers < 0 ? LayersAt(path) : layers; left > 0; --left) {
    if (::umount2(path.c_str(), UMOUNT_NOFOLLOW) != 0) return Failed("unmount " + path);
  }
  return RpcStatus::OK;
}

RpcStatus Run(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (const int fd : {1, 2}) {
    posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_WRONLY, 0);
  }
  pid_t pid = -1;
  int status = -1;
  const bool runs = ::posix_spawnp(&pid, argv[0], &quiet, nullptr, argv.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&quiet);
  while (runs && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (runs && status == 0) return RpcStatus::OK;
  return {StatusCode::INTERNAL, words.front() + " failed"};
}

std::string Folder(const std::string& directory, const std::string& volume) {
  std::string name;
  for (const char c : volume) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    name += plain ? std::string(1, c) : "%" + std::to_string(static_cast<unsigned char>(c));
  }
  return directory + "/volumes/" + name;
}

std::map<std::string, CsiFakeVolume> ReadState(const std::string& directory) {
  std::ifstream file(directory + "/state.json");
  if (!file) return {};
  return nlohmann::json::parse(file).get<std::map<std::string, CsiFakeVolume>>();
}

RpcStatus NotKnown(const std::string& volume) {
  return {StatusCode::NOT_FOUND, "no volume \"" + volume + "\""};
}

}  // namespace

int LayersAt(const std::string& path) {
  int layers = 0;
  std::ifstream table("/proc/thread-self/mountinfo");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, inner, point;
    fields >> id >> parent >> device >> inner >> point;
    if (point == path) ++layers;
  }
  return layers;
}

std::string LoopDeviceOf(const std::string& image) {
  std::error_code none;
  for (const auto& device : fs::directory_iterator("/sys/block", none)) {
    std::ifstream file(device.path() / "loop/backing_file");
    std::string backing;
    if (std::getline(file, backing) && backing == image) {
      return "/dev/" + device.path().filename().string();
    }
  }
  return "";
}

CsiFakeWorld::CsiFakeWorld(CsiFakeWorldOptions options, Violated violated)
    : options_(std::move(options)), violated_(std::move(violated)) {
  fs::create_directories(options_.directory + "/volumes");
  volumes_ = ReadState(options_.directory);
}

void CsiFakeWorld::Configure(bool stages, bool attaches, const std::string& node_id) {
  const std::lock_guard lock(mu_);
  options_.stages = stages;
  options_.attaches = attaches;
  options_.node_id = node_id;
}

void CsiFakeWorld::Forget() {
  const std::lock_guard lock(mu_);
  volumes_.clear();
  Save();
}

CsiFakeVolume* CsiFakeWorld::Find(const std::string& volume, bool may_be_new) {
  const auto known = volumes_.find(volume);
  if (known != volumes_.end()) return &known->second;
  if (!may_be_new || options_.known_only) return nullptr;
  return &volumes_.emplace(volume, CsiFakeVolume{.size_bytes = options_.size_bytes}).first->second;
}

std::string CsiFakeWorld::FolderOf(const std::string& volume) const {
  return Folder(options_.directory, volume);
}

RpcStatus CsiFakeWorld::Refuse(const std::string& text) {
  violated_(text);
  return {StatusCode::FAILED_PRECONDITION, text};
}

// As a file is replaced: whoever ends in between leaves the old one.
void CsiFakeWorld::Save() {
  const std::string path = options_.directory + "/state.json";
  {
    std::ofstream file(path + ".new", std::ios::trunc);
    file << nlohmann::json(volumes_).dump();
  }
  fs::rename(path + ".new", path);
}

// The directory that is bound, or the loop device.
RpcStatus CsiFakeWorld::MakeSource(const std::string& volume, bool block, std::string* source) {
  CsiFakeVolume& known = *Find(volume, true);
  const std::string folder = FolderOf(volume);
  const std::string data = folder + "/data";
  fs::create_directories(data);
  if (!block && options_.volumes != "loop") {
    *source = data;
    if (options_.volumes == "directory" || LayersAt(data) > 0) return RpcStatus::OK;
    const std::string size = "mode=0755,size=" + std::to_string(known.size_bytes);
    return ::mount("fake-csi", data.c_str(), "tmpfs", 0, size.c_str()) == 0
               ? RpcStatus::OK
               : Failed("mount " + data);
  }
  const std::string image = folder + "/image";
  if (!fs::exists(image)) {
    if (!MakeImage(image, known.size_bytes)) return Failed("make " + image);
    if (const RpcStatus made = block ? RpcStatus::OK : Run({"mkfs.ext4", "-q", "-F", image});
        !made.ok()) {
      fs::remove(image);
      return made;
    }
  }
  *source = LoopDeviceOf(image);
  if (!source->empty()) return RpcStatus::OK;
  LoopDevice device(image);
  if (!device.valid()) return Failed("attach " + image);
  *source = device.Release();
  return RpcStatus::OK;
}

RpcStatus CsiFakeWorld::MountSource(const std::string& volume, const std::string& path) {
  std::string source;
  if (const RpcStatus made = MakeSource(volume, false, &source); !made.ok()) return made;
  if (options_.volumes != "loop") return Bind(source, path, false);
  return ::mount(source.c_str(), path.c_str(), "ext4", 0, nullptr) == 0 ? RpcStatus::OK
                                                                        : Failed("mount " + path);
}

RpcStatus CsiFakeWorld::Stage(const CsiFakeUse& use, const std::string& effect) {
  const std::lock_guard lock(mu_);
  CsiFakeVolume* known = Find(use.volume, true);
  if (known == nullptr) return NotKnown(use.volume);
  if (options_.attaches && !Contains(known->nodes, options_.node_id)) {
    return Refuse("NodeStageVolume of " + use.volume + ", which is not attached to this node");
  }
  if (options_.attaches && use.publish_context.count("attached") == 0) {
    return Refuse("NodeStageVolume of " + use.volume + " without its publish context");
  }
  if (effect == "no-target") {
    fs::remove(use.staging);
    return RpcStatus::OK;
  }
  RpcStatus done = RpcStatus::OK;
  std::string device;
  if (use.block) {
    done = MakeSource(use.volume, true, &device);
  } else if (!fs::is_directory(use.staging)) {
    return Refuse("NodeStageVolume of " + use.volume + " at no directory: " + use.staging);
  } else if (LayersAt(use.staging) == 0) {
    done = MountSource(effect == "other-volume" ? kOther : use.volume, use.staging);
    if (done.ok() && effect == "two-layers") done = MountSource(use.volume, use.staging);
  }
  if (done.ok() && !Contains(known->staged, use.staging)) known->staged.push_back(use.staging);
  Save();
  return done;
}

RpcStatus CsiFakeWorld::Unstage(const std::string& volume, const std::string& path,
                                const std::string& effect) {
  const std::lock_guard lock(mu_);
  CsiFakeVolume* known = Find(volume, false);
  if (known == nullptr) return NotKnown(volume);
  if (!known->published.empty()) {
    return Refuse("NodeUnstageVolume of " + volume + ", which is published at " +
                  known->published.begin()->first);
  }
  const RpcStatus done = Unmount(path, effect == "one-layer" ? 1 : -1);
  if (!done.ok()) return done;
  if (effect == "leave-file") std::ofstream(path + "/left") << "left";
  std::erase(known->staged, path);
  const std::string loop = LoopDeviceOf(FolderOf(volume) + "/image");
  if (known->staged.empty() && !loop.empty()) LoopDevice::Adopted(loop).Detach();
  Save();
  return RpcStatus::OK;
}

RpcStatus CsiFakeWorld::CheckPublish(const CsiFakeUse& use, CsiFakeVolume* known) {
  if (known == nullptr) return NotKnown(use.volume);
  if (options_.stages && !Contains(known->staged, use.staging)) {
    return Refuse("NodePublishVolume of " + use.volume + ", which is not staged at \"" +
                  use.staging + "\"");
  }
  if (options_.attaches && use.publish_context.count("attached") == 0) {
    return Refuse("NodePublishVolume of " + use.volume + " without its publish context");
  }
  if (!fs::is_directory(fs::path(use.target).parent_path())) {
    return Refuse("NodePublishVolume of " + use.volume + " below no directory: " + use.target);
  }
  return RpcStatus::OK;
}

RpcStatus CsiFakeWorld::Publish(const CsiFakeUse& use, const std::string& effect) {
  const std::lock_guard lock(mu_);
  CsiFakeVolume* known = Find(use.volume, !options_.stages);
  if (const RpcStatus right = CheckPublish(use, known); !right.ok()) return right;
  RpcStatus done = RpcStatus::OK;
  if (effect == "no-target") {
    fs::remove(use.target);
  } else if (LayersAt(use.target) == 0) {
    done = use.block ? PublishBlock(use, effect) : PublishMount(use, effect, known);
  }
  if (done.ok()) known->published[use.target] = use.block;
  Save();
  return done;
}

RpcStatus CsiFakeWorld::PublishBlock(const CsiFakeUse& use, const std::string& effect) {
  if (effect == "directory") {
    fs::create_directory(use.target);
    return RpcStatus::OK;
  }
  std::ofstream(use.target, std::ios::app).close();
  if (effect == "file") return RpcStatus::OK;
  std::string device;
  const RpcStatus made = MakeSource(effect == "other-volume" ? kOther : use.volume, true, &device);
  return made.ok() ? Bind(device, use.target, false) : made;
}

RpcStatus CsiFakeWorld::PublishMount(const CsiFakeUse& use, const std::string& effect,
                                     CsiFakeVolume* known) {
  fs::create_directory(use.target);
  if (effect == "no-mount") return RpcStatus::OK;
  std::string at = use.target;
  if (effect == "elsewhere") {
    at = FolderOf(use.volume) + "/elsewhere";
    fs::create_directories(at);
    known->elsewhere = {at};
  }
  const bool readonly = use.readonly && effect != "writable";
  const bool is_bound = options_.stages && effect != "other-volume";
  for (int layers = effect == "two-layers" ? 2 : 1; layers > 0; --layers) {
    const RpcStatus done = is_bound
                               ? Bind(use.staging, at, readonly)
                               : MountSource(effect == "other-volume" ? kOther : use.volume, at);
    if (!done.ok()) return done;
  }
  return RpcStatus::OK;
}

RpcStatus CsiFakeWorld::Unpublish(const std::string& volume, const std::string& path,
                                  const std::string& effect) {
  const std::lock_guard lock(mu_);
  CsiFakeVolume* known = Find(volume, false);
  if (known == nullptr) return NotKnown(volume);
  const RpcStatus done = Unmount(path, effect == "one-layer" ? 1 : -1);
  if (!done.ok()) return done;
  for (const std::string& other : known->elsewhere) (void)Unmount(other, -1);
  known->elsewhere.clear();
  if (effect == "leave-file") {
    std::ofstream(path + "/left") << "left";
  } else if (effect != "one-layer") {
    std::error_code absent;
    fs::remove(path, absent);
  }
  known->published.erase(path);
  Save();
  return RpcStatus::OK;
}

RpcStatus CsiFakeWorld::Attach(const std::string& volume, const std::string& node,
                               google::protobuf::Map<std::string, std::string>* context) {
  const std::lock_guard lock(mu_);
  CsiFakeVolume* known = Find(volume, true);
  if (known == nullptr) return NotKnown(volume);
  if (node != options_.node_id) return {StatusCode::NOT_FOUND, "no node \"" + node + "\""};
  if (!Contains(known->nodes, node)) known->nodes.push_back(node);
  (*context)["attached"] = volume;
  Save();
  return RpcStatus::OK;
}

RpcStatus CsiFakeWorld::Detach(const std::string& volume, const std::string& node) {
  const std::lock_guard lock(mu_);
  CsiFakeVolume* known = Find(volume, false);
  if (known == nullptr) return NotKnown(volume);
  if (!known->staged.empty() || !known->published.empty()) {
    return Refuse("ControllerUnpublishVolume of " + volume + ", which is staged or published");
  }
  std::erase_if(known->nodes, [&](const std::string& one) { return node.empty() || one == node; });
  Save();
  return RpcStatus::OK;
}

RpcStatus CsiFakeWorld::Create(const ::csi::v1::CreateVolumeRequest& request,
                               const std::string& effect, ::csi::v1::Volume* volume) {
  const std::lock_guard lock(mu_);
  const int64_t asked = request.capacity_range().required_bytes();
  const std::string id = "vol-" + request.name();
  if (request.name().empty()) return {StatusCode::INVALID_ARGUMENT, "no name"};
  const auto [known, is_new] = volumes_.try_emplace(
      id,
      CsiFakeVolume{.name = request.name(), .size_bytes = asked > 0 ? asked : options_.size_bytes});
  if (!is_new && asked > known->second.size_bytes) {
    return {StatusCode::ALREADY_EXISTS, "\"" + request.name() + "\" is smaller"};
  }
  if (is_new && effect == "smaller") known->second.size_bytes /= 2;
  volume->set_volume_id(id);
  volume->set_capacity_bytes(known->second.size_bytes);
  if (request.has_volume_content_source()) {
    *volume->mutable_content_source() = request.volume_content_source();
  }
  Save();
  return RpcStatus::OK;
}

RpcStatus CsiFakeWorld::Delete(const std::string& volume) {
  const std::lock_guard lock(mu_);
  const CsiFakeVolume* known = Find(volume, false);
  if (known == nullptr) return RpcStatus::OK;
  if (!known->nodes.empty() || !known->staged.empty() || !known->published.empty()) {
    return Refuse("DeleteVolume of " + volume + ", which is in use");
  }
  const std::string data = FolderOf(volume) + "/data";
  if (const RpcStatus done = Unmount(data, -1); !done.ok()) return done;
  const std::string loop = LoopDeviceOf(FolderOf(volume) + "/image");
  if (!loop.empty()) LoopDevice::Adopted(loop).Detach();
  fs::remove_all(FolderOf(volume));
  volumes_.erase(volume);
  Save();
  return RpcStatus::OK;
}

RpcStatus CsiFakeWorld::GrowImage(const CsiFakeVolume& known, const std::string& folder) {
  if (::truncate((folder + "/image").c_str(), known.size_bytes) != 0) return Failed("grow");
  const std::string loop = LoopDeviceOf(folder + "/image");
  if (loop.empty()) return RpcStatus::OK;
  const Descriptor device(::open(loop.c_str(), O_RDWR | O_CLOEXEC));
  if (::ioctl(device.get(), LOOP_SET_CAPACITY) != 0) return Failed("grow " + loop);
  const bool is_block = std::any_of(known.published.begin(), known.published.end(),
                                    [](const auto& use) { return use.second; });
  return is_block ? RpcStatus::OK : Run({"resize2fs", loop});
}

RpcStatus CsiFakeWorld::Grow(const std::string& volume, int64_t size_bytes, bool on_node,
                             const std::string& effect, int64_t* now) {
  const std::lock_guard lock(mu_);
  CsiFakeVolume* known = Find(volume, false);
  if (known == nullptr) return NotKnown(volume);
  const int64_t size = effect == "smaller" ? size_bytes / 2 : size_bytes;
  known->size_bytes = std::max(known->size_bytes, size);
  *now = effect == "smaller" ? size : known->size_bytes;
  Save();
  if (!on_node) return RpcStatus::OK;
  const std::string folder = FolderOf(volume);
  if (fs::exists(folder + "/image")) return GrowImage(*known, folder);
  if (options_.volumes == "directory" || LayersAt(folder + "/data") == 0) return RpcStatus::OK;
  const std::string bytes = "size=" + std::to_string(known->size_bytes);
  return ::mount(nullptr, (folder + "/data").c_str(), nullptr, MS_REMOUNT, bytes.c_str()) == 0
             ? RpcStatus::OK
             : Failed("grow " + folder);
}

RpcStatus CsiFakeWorld::Stats(const std::string& volume, const std::string& path,
                              ::csi::v1::NodeGetVolumeStatsResponse* stats) {
  const std::lock_guard lock(mu_);
  const CsiFakeVolume* known = Find(volume, false);
  struct statvfs info {};
  if (known == nullptr || ::statvfs(path.c_str(), &info) != 0) return NotKnown(volume);
  auto* bytes = stats->add_usage();
  bytes->set_unit(::csi::v1::VolumeUsage::BYTES);
  const auto block = known->published.find(path);
  if (block != known->published.end() && block->second) {
    bytes->set_total(known->size_bytes);
    return RpcStatus::OK;
  }
  const auto unit = static_cast<int64_t>(info.f_frsize);
  bytes->set_total(static_cast<int64_t>(info.f_blocks) * unit);
  bytes->set_available(static_cast<int64_t>(info.f_bavail) * unit);
  bytes->set_used(static_cast<int64_t>(info.f_blocks - info.f_bfree) * unit);
  auto* inodes = stats->add_usage();
  inodes->set_unit(::csi::v1::VolumeUsage::INODES);
  inodes->set_total(static_cast<int64_t>(info.f_files));
  inodes->set_available(static_cast<int64_t>(info.f_favail));
  inodes->set_used(static_cast<int64_t>(info.f_files - info.f_ffree));
  return RpcStatus::OK;
}

std::map<std::string, CsiFakeVolume> CsiFakeWorld::Volumes() {
  const std::lock_guard lock(mu_);
  return volumes_;
}

std::string CsiFakeWorld::StateText() { return nlohmann::json(Volumes()).dump(); }

void CsiFakeWorld::Clear(const std::string& directory) {
  const auto gone = [](const std::string& path) {
    while (LayersAt(path) > 0 && ::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
    }
  };
  for (const auto& [volume, known] : ReadState(directory)) {
    for (const auto& [path, block] : known.published) gone(path);
    for (const std::string& path : known.staged) gone(path);
    for (const std::string& path : known.elsewhere) gone(path);
  }
  std::error_code none;
  for (const auto& folder : fs::directory_iterator(directory + "/volumes", none)) {
    gone(folder.path().string() + "/data");
    const std::string loop = LoopDeviceOf(folder.path().string() + "/image");
    if (!loop.empty()) LoopDevice::Adopted(loop).Detach();
  }
}

}  // namespace volumed
