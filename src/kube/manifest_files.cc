#include "kube/manifest_files.h"

#include <memory>
#include <utility>

namespace volumed {
namespace {

std::string KeptText(size_t count) {
  if (count == 0) return "";
  return "; " + std::to_string(count) + " object" + (count == 1 ? "" : "s") +
         " of its last good state stay";
}

}  // namespace

void ManifestFiles::Keep(const std::string& file, const std::string& reason) {
  File& known = files_[file];
  known.vanished = false;
  known.problems = {{PathOf(file), -1, "", "", reason + KeptText(known.objects.size())}};
}

void ManifestFiles::Apply(ManifestReading reading) {
  switch (reading.what) {
    case ManifestReading::What::kChanging:
      if (const auto file = files_.find(reading.file); file != files_.end()) {
        file->second.vanished = false;
      }
      return;
    case ManifestReading::What::kGone:
      files_.erase(reading.file);
      return;
    case ManifestReading::What::kUnreadable:
      Keep(reading.file, reading.error);
      return;
    case ManifestReading::What::kRead:
      break;
  }
  ManifestDecode& decode = reading.decode;
  // A size or an encoding problem leaves no document either, but says more than "empty".
  if (decode.documents == 0 && decode.problems.empty()) {
    Keep(reading.file, "holds no object");
    return;
  }
  File next;
  std::set<ObjectKey> seen;
  for (DecodedObject& decoded : decode.objects) {
    seen.insert(KeyOf(decoded.object));
    next.objects.push_back({std::make_shared<const Object>(std::move(decoded.object)),
                            PathOf(reading.file), decoded.document});
  }
  next.problems = std::move(decode.problems);
  if (!next.problems.empty()) {
    size_t kept = 0;
    for (const ObjectWithOrigin& old : files_[reading.file].objects) {
      if (seen.count(KeyOf(*old.object)) > 0) continue;
      next.objects.push_back(old);
      ++kept;
    }
    if (kept > 0) {
      next.problems.push_back(
          {PathOf(reading.file), -1, "", "", "is not right in all its parts" + KeptText(kept)});
    }
  }
  files_[reading.file] = std::move(next);
}

void ManifestFiles::Vanish(const std::string& file) {
  const auto known = files_.find(file);
  if (known != files_.end()) known->second.vanished = true;
}

void ManifestFiles::KeepUnseen(const std::string& file) {
  if (!HasObjects(file)) {
    files_.erase(file);
    return;
  }
  Keep(file,
       "was not unlinked, but the directory is another one now and does not have it "
       "(volumectl source forget drops it)");
}

bool ManifestFiles::HasObjects(const std::string& file) const {
  const auto known = files_.find(file);
  return known != files_.end() && !known->second.objects.empty();
}

std::vector<std::string> ManifestFiles::AbsentFrom(const std::set<std::string>& present) const {
  std::vector<std::string> absent;
  for (const auto& [name, file] : files_) {
    if (present.count(name) == 0) absent.push_back(name);
  }
  return absent;
}

void ManifestFiles::AppendTo(ObjectList& list) const {
  std::set<ObjectKey> present;
  for (const auto& [name, file] : files_) {
    if (file.vanished) continue;
    for (const ObjectWithOrigin& object : file.objects) present.insert(KeyOf(*object.object));
  }
  for (const auto& [name, file] : files_) {
    for (const ObjectWithOrigin& object : file.objects) {
      if (file.vanished && present.count(KeyOf(*object.object)) > 0) continue;
      list.objects.push_back(object);
    }
    list.problems.insert(list.problems.end(), file.problems.begin(), file.problems.end());
  }
}

}  // namespace volumed
