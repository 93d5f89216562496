// FakeIrreversibleSteps: admits every step and remembers it, until it is told to hold steps back.
#pragma once

#include <string>
#include <vector>

#include "volumehost/irreversible_steps.h"

namespace volumed {

class FakeIrreversibleSteps final : public IrreversibleSteps {
 public:
  Status Admit(IrreversibleStep step, const std::string& volume) override {
    asked.push_back(std::string(IrreversibleStepName(step)) + " " + volume);
    if (!hold) return OkStatus();
    return Error::NotApplied(Code::kFailedPrecondition, asked.back() + " is held back");
  }
  bool InDoubt() const override { return hold; }

  bool hold = false;
  std::vector<std::string> asked;  // "mkfs pv-1"
};

}  // namespace volumed
