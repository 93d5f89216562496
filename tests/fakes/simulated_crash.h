// SimulatedCrash: thrown by a fake at the point where a test ends the agent. Only the test's driver
// catches it; the program itself has no handler that could.
#pragma once

namespace volumed {

struct SimulatedCrash {};

}  // namespace volumed
