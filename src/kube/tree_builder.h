// TreeBuilder: makes one JSON value from the events of a JSON or YAML parser, and limits its depth,
// number of values and expanded size; duplicate keys are refused. After the first breach all
// further events are ignored.
// Threads: one. Blocks: no. For use in .cc files of kube/ only.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace volumed {

// REQUIRES: the events are those of a parser, which opens and closes in pairs, and gives a key
// before each value of a map.
class TreeBuilder {
 public:
  using Json = nlohmann::json;
  // Identifies a value to which aliases may refer; 0 is no anchor.
  using Anchor = size_t;

  // Each of these returns false from the first breach on.
  bool StartMap(Anchor anchor = 0) { return Start(Json::object(), anchor); }
  bool StartList(Anchor anchor = 0) { return Start(Json::array(), anchor); }
  // Ends the map or list that was begun last.
  bool End();
  // Must be followed by its value. A key that the map has already is a breach.
  bool Key(std::string key);
  // The merge key "<<" of YAML 1.1: the next value gives entries to this map.
  bool MergeKey();
  // A text, number, truth value or null; in a list, under the last key, or as the whole document.
  bool Value(Json scalar, Anchor anchor = 0);
  // Puts a copy of the anchored value here. Its size counts once more; a value that is not complete
  // yet has no end, and is a breach.
  bool Alias(Anchor anchor);
  // True inside a map, before a key.
  bool ExpectsKey() const { return !stack_.empty() && stack_.back().expects_key; }

  // Ends the document with a breach of the caller's own; the first reason stays. Returns false.
  bool Fail(std::string reason);
  // Why nothing is taken any more; "" while all is well. It may quote a key that a map has twice,
  // if that could be a ConfigMap's.
  const std::string& error() const { return error_; }
  // The value, once, if the events were complete and broke no limit; nullopt otherwise.
  std::optional<Json> Take();

 private:
  struct Size {
    size_t nodes = 0;
    size_t bytes = 0;
  };
  // A value that aliases may name, with the size that each of them adds. clang-tidy believes that
  // the library's assertions could make the move of a Json throw.
  struct Anchored {  // NOLINT(bugprone-exception-escape)
    Json value;
    Size size;
  };
  // A map or list that has been begun and not ended.
  struct Frame {  // NOLINT(bugprone-exception-escape): as of Anchored
    Json value;
    Anchor anchor = 0;
    Size size_before;
    bool is_map = false;
    bool expects_key = false;
    bool merging = false;
    std::string key;
    std::vector<Json> merged;
  };

  bool Start(Json container, Anchor anchor);
  bool Grow(Size by);
  // Puts a finished value where it belongs.
  bool Place(Json value);

  std::vector<Frame> stack_;
  std::map<Anchor, Anchored> anchors_;
  std::optional<Json> root_;
  Size size_;
  std::string error_;
};

}  // namespace volumed
