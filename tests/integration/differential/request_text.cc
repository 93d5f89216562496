// RequestText (integration/differential/request_generator.h).
#include <optional>

#include "integration/differential/request_generator.h"

namespace volumed {
namespace {

std::string PathText(const SafePath& path) {
  return "{" + path.root + " | " + path.relative +
         (path.resolve == Resolve::kBeneath ? " | beneath}" : "}");
}

std::string Octal(uint32_t mode) {
  std::string text;
  for (; mode != 0; mode /= 8) text.insert(text.begin(), static_cast<char>('0' + mode % 8));
  return "0" + text;
}

std::string FileText(const PayloadFile& file) {
  return " " + file.path + ":" + std::to_string(file.content.Reveal().size()) + ":" +
         Octal(file.mode) + (file.uid ? ":" + std::to_string(*file.uid) : "");
}

std::vector<PayloadFile> FilesOf(const std::optional<VolumePayload>& payload) {
  return payload ? payload->files : std::vector<PayloadFile>();
}

std::string PartText(const SkeletonPart& part) {
  return part.name + ":" + std::to_string(static_cast<int>(part.kind)) + ":" +
         std::to_string(part.levels) + (part.leaf_files ? ":files" : "");
}

}  // namespace

std::string RequestText(const AnyRequest& request) {
  return std::visit(
      [&request](const auto& r) {
        std::string text(RequestName(request));
        if constexpr (requires { r.source.root; }) text += " " + PathText(r.source);
        if constexpr (requires { r.fs_type; }) text += " " + r.fs_type;
        if constexpr (requires { r.path; }) text += " " + PathText(r.path);
        if constexpr (requires { r.from; })
          text += " " + PathText(r.from) + " as " + PathText(r.to);
        if constexpr (requires { r.from_offset; }) text += " @" + std::to_string(r.from_offset);
        if constexpr (requires { r.point; }) text += " " + PathText(r.point.mount_point);
        if constexpr (requires { r.cuts; }) {
          for (const FreezePoint& point : r.freeze) text += " " + PathText(point.mount_point);
          for (const CutPart& part : r.cuts) {
            text += " " + PathText(part.from) + " as " + PathText(part.to);
          }
        }
        if constexpr (requires { r.below; }) text += " below " + r.below + " around " + r.around;
        if constexpr (requires { r.arguments; }) {
          for (const std::string& argument : r.arguments) text += " " + argument;
        }
        if constexpr (requires { r.target; }) text += " " + PathText(r.target);
        if constexpr (requires { r.marker; }) text += " marker " + PathText(r.marker);
        if constexpr (requires { r.tmpfs; }) text += r.tmpfs ? " tmpfs" : "";
        if constexpr (requires { r.sub_path; }) text += " " + PathText(r.volume) + " " + r.sub_path;
        if constexpr (requires { r.of_volume; }) text += " " + PathText(r.of_volume);
        if constexpr (requires { r.keep_directories; }) text += r.keep_directories ? " keep" : "";
        if constexpr (requires { r.payload; }) {
          if (r.payload && r.payload->is_refresh) text += " refresh";
          for (const PayloadFile& file : FilesOf(r.payload)) text += FileText(file);
        }
        if constexpr (requires { r.parts; }) {
          for (const SkeletonPart& part : r.parts) text += " " + PartText(part);
        }
        if constexpr (requires { r.items; }) {
          for (const BatchItem& item : r.items) text += "\n    " + RequestText(item.request);
        }
        if constexpr (requires { r.options; }) {
          for (const std::string& option : r.options) text += " " + option;
        }
        if constexpr (requires { r.recursive; }) {
          text += std::string(r.read_only ? " ro" : "") + (r.recursive ? " recursive" : "") +
                  (r.recursive_read_only ? " recursive-ro" : "");
        }
        if constexpr (requires { r.leads_to; }) text += " -> " + r.leads_to;
        if constexpr (requires { r.allocate; }) {
          text += " to " + std::to_string(r.bytes) + (r.make ? " make" : "") +
                  (r.allocate ? " allocate" : "");
        }
        if constexpr (requires { r.pin; }) text += r.pin ? " pin" : "";
        if constexpr (requires { r.force; }) text += r.force ? " force" : "";
        if constexpr (requires { r.follow; }) {
          text += std::string(r.follow ? " follow" : "") + (r.only_mount_point ? " point" : "");
        }
        if constexpr (requires { r.device; }) text += " " + r.device;
        if constexpr (requires { Octal(r.mode); }) text += " " + Octal(r.mode);
        if constexpr (requires { r.exact_mode; }) {
          text += std::string(r.exact_mode ? " exact" : "") +
                  (r.parent_mode ? " parents " + Octal(*r.parent_mode) : "");
        }
        if constexpr (requires { r.on_root_mismatch; }) {
          text += " gid " + std::to_string(r.gid) + (r.read_only ? " ro" : "") +
                  (r.on_root_mismatch ? " on-mismatch" : "");
        }
        if constexpr (requires { r.files; }) {
          for (const PayloadFile& file : r.files) text += FileText(file);
          if (r.gid) text += " gid " + std::to_string(*r.gid);
        }
        return text;
      },
      request);
}

}  // namespace volumed
