// Each fuzz target over its corpus, and over a fixed number of mangled copies of it, without
// libFuzzer: cheap enough for every run of the tests. VOLUMED_FUZZ_RUNS: how many copies;
// VOLUMED_SEED: another seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "run_numbers.h"

#define VOLUMED_FUZZ_TARGET(name) \
  extern "C" int volumed_fuzz_##name(const uint8_t* data, size_t size);
#include "fuzz_targets.inc"
#undef VOLUMED_FUZZ_TARGET

namespace volumed::fuzz_replay_test {
namespace {

namespace fs = std::filesystem;

struct Target {
  std::string name;
  int (*run)(const uint8_t* data, size_t size);
};

// A broken property aborts, so that only a handler can still say of which input.
std::string running;
void TellInput(int) { std::fprintf(stderr, "fuzz_replay: %s\n", running.c_str()); }

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> Corpus(const std::string& name) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(VOLUMED_FUZZ_CORPUS) / name)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const fs::path& path : paths) {
    inputs.push_back(ReadFile(path));
  }
  return inputs;
}

// One change of the kinds that libFuzzer makes. Not std::uniform_int_distribution: its numbers
// differ between libraries.
void MangleOnce(std::string& input, const std::string& other, std::mt19937_64& dice) {
  const auto below = [&](size_t limit) { return static_cast<size_t>(dice() % limit); };
  const size_t at = below(input.size() + 1);
  const size_t length = 1 + below(8);
  switch (below(6)) {
    case 0:
      input.insert(at, 1, static_cast<char>(below(256)));
      return;
    case 1:
      input.erase(at, length);
      return;
    case 2:
      input.insert(at, input.substr(below(input.size() + 1), length));
      return;
    case 3:
      input.insert(at, other.substr(below(other.size() + 1), 4 * length));
      return;
    case 4:
      input.resize(at);
      return;
    default:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
  }
}

class FuzzReplay : public testing::TestWithParam<Target> {};

TEST_P(FuzzReplay, NoPropertyIsBroken) {
  const Target& target = GetParam();
  const std::vector<std::string> corpus = Corpus(target.name);
  ASSERT_FALSE(corpus.empty());
  const uint64_t seed = NumberOfRun("VOLUMED_SEED", 1);
  const auto run = [&](const std::string& input, const std::string& what) {
    running = target.name + ", seed " + std::to_string(seed) + ", " + what + ":\n" + input;
    target.run(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  };
  std::signal(SIGABRT, TellInput);
  for (const std::string& input : corpus) run(input, "corpus");
  std::mt19937_64 dice(seed);
  const uint64_t runs = NumberOfRun("VOLUMED_FUZZ_RUNS", 500);
  for (uint64_t i = 0; i < runs; ++i) {
    std::string input = corpus[dice() % corpus.size()];
    const std::string& other = corpus[dice() % corpus.size()];
    for (uint64_t changes = 1 + dice() % 4; changes > 0; --changes) MangleOnce(input, other, dice);
    run(input, "copy " + std::to_string(i));
  }
}

std::vector<Target> Targets() {
  return {
#define VOLUMED_FUZZ_TARGET(name) {#name, &volumed_fuzz_##name},
#include "fuzz_targets.inc"
#undef VOLUMED_FUZZ_TARGET
  };
}

INSTANTIATE_TEST_SUITE_P(All, FuzzReplay, testing::ValuesIn(Targets()),
                         [](const auto& target) { return target.param.name; });

}  // namespace
}  // namespace volumed::fuzz_replay_test
