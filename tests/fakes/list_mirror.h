// ListMirror: what a listener has of a source that keeps its list: full lists as they are, and
// deltas applied to the last one. A test that asks for the whole list hears deltas through it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "kube/object_source.h"

namespace volumed {

class ListMirror {
 public:
  // In which order the source lists its objects.
  enum class Order { kByFile, kByName };
  explicit ListMirror(Order order = Order::kByFile) : order_(order) {}

  // The whole list after the update.
  const ObjectList& Take(ObjectUpdate update) {
    if (ObjectList* list = std::get_if<ObjectList>(&update)) {
      list_ = std::move(*list);
    } else {
      ++deltas_;
      Apply(std::get<ObjectDelta>(std::move(update)));
    }
    return list_;
  }
  const ObjectList& list() const { return list_; }
  int deltas() const { return deltas_; }

 private:
  void Apply(ObjectDelta delta) {
    EXPECT_TRUE(list_.complete) << "a delta before the first complete list";
    EXPECT_EQ(list_.source, delta.source);
    std::set<std::pair<std::string, ObjectKey>> gone;
    for (const auto& removed : delta.removed) {
      const bool was_there =
          std::any_of(list_.objects.begin(), list_.objects.end(), [&](const ObjectWithOrigin& one) {
            return one.file == removed.file && KeyOf(*one.object) == removed.key;
          });
      EXPECT_TRUE(was_there) << ToString(removed.key) << " was not listed in " << removed.file;
      gone.emplace(removed.file, removed.key);
    }
    for (const auto& object : delta.objects) gone.emplace(object.file, KeyOf(*object.object));
    std::erase_if(list_.objects, [&](const ObjectWithOrigin& one) {
      return gone.contains({one.file, KeyOf(*one.object)});
    });
    list_.objects.insert(list_.objects.end(), delta.objects.begin(), delta.objects.end());
    const bool by_name = order_ == Order::kByName;
    std::stable_sort(list_.objects.begin(), list_.objects.end(), [=](const auto& a, const auto& b) {
      if (by_name) return KeyOf(*a.object) < KeyOf(*b.object);
      return std::tie(a.file, a.document, a.index) < std::tie(b.file, b.document, b.index);
    });
    std::set<ObjectKey> known(delta.not_unknown.begin(), delta.not_unknown.end());
    for (const auto& unknown : delta.unknown) known.insert(unknown.key);
    std::erase_if(list_.unknown, [&](const auto& one) { return known.contains(one.key); });
    list_.unknown.insert(list_.unknown.end(), delta.unknown.begin(), delta.unknown.end());
    std::sort(list_.unknown.begin(), list_.unknown.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
    Replace(list_.problems, delta.problems);
    Replace(list_.warnings, delta.warnings);
    list_.incomplete_because = std::move(delta.incomplete_because);
    list_.unseen_because = std::move(delta.unseen_because);
    if (delta.directory) list_.directory = std::move(delta.directory);
    list_.unproven = std::move(delta.unproven);
  }

  static void Replace(std::vector<DecodeProblem>& all, const ObjectDelta::ByFile& news) {
    std::erase_if(all, [&](const DecodeProblem& one) { return news.contains(one.file); });
    for (const auto& [file, problems] : news) {
      all.insert(all.end(), problems.begin(), problems.end());
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.file < b.file; });
  }

  const Order order_;
  ObjectList list_;
  int deltas_ = 0;
};

}  // namespace volumed
