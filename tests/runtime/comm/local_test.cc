#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/comm/local/channel.h"
#include "runtime/comm/local/collective.h"

namespace piper {
namespace {

// Runs `member(i)` for i < n on a thread each, and gives what each threw, or "".
std::vector<std::string> on_threads(std::uint32_t n,
                                    const std::function<void(std::uint32_t)>& member) {
  std::vector<std::string> errors(n);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < n; ++i) {
    threads.emplace_back([&, i] {
      try {
        member(i);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return errors;
}

TEST(LocalChannel, DeliversEveryMessageInOrderWhoeverComesFirst) {
  Cancellation cancellation;
  LocalChannel links[] = {{cancellation, 0, 2}, {cancellation, 1, 3}};
  constexpr std::uint32_t kMessages = 500;
  std::vector<std::vector<int>> received(2);

  on_threads(4, [&](std::uint32_t thread) {
    const std::uint32_t member = thread / 2;
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      int value = static_cast<int>(1000 * member + i);
      if (i % 97 == 13 * (thread % 2)) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      if (thread % 2 == 0) {
        links[member].send({2 * i, 2 * i + 1, DType::bfloat16, &value, sizeof value / 2});
        value = -1;  // the bytes have arrived, so this is not seen
      } else {
        links[member].recv({2 * i + 1, 2 * i, DType::bfloat16, &value, sizeof value / 2});
        received[member].push_back(value);
      }
    }
  });

  for (std::uint32_t member = 0; member < 2; ++member) {
    std::vector<int> expected(kMessages);
    std::iota(expected.begin(), expected.end(), 1000 * member);
    EXPECT_EQ(received[member], expected);
  }
}

TEST(LocalChannel, RefusesASendThatMeetsAnotherReceiveAndNamesBoth) {
  Cancellation cancellation;
  LocalChannel link(cancellation, 0, 1);
  double data = 0;

  const std::vector<std::string> errors = on_threads(2, [&](std::uint32_t thread) {
    try {
      if (thread == 0) {
        link.send({10, 11, DType::float64, &data, 1});
      } else {
        link.recv({13, 12, DType::float64, &data, 1});
      }
    } catch (const CommunicationError&) {
      cancellation.request();
      throw;
    }
  });

  const std::string expected =
      "rank 0 sends to rank 1, but the ends differ: send node 10 (expects node 11, 8 bytes) met "
      "receive node 13 (expects node 12, 8 bytes)";
  EXPECT_TRUE((errors[0] == expected && errors[1] == "cancelled") ||
              (errors[1] == expected && errors[0] == "cancelled"))
      << errors[0] << '\n'
      << errors[1];
}

TEST(LocalChannel, RefusesEndsOfDifferentSizes) {
  Cancellation cancellation;
  LocalChannel link(cancellation, 0, 1);
  double data[2] = {};
  auto send = std::async(std::launch::async, [&] { link.send({1, 2, DType::float64, data, 2}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));

  EXPECT_THROW(link.recv({2, 1, DType::float64, data, 1}), CommunicationError);
  cancellation.request();

  EXPECT_THROW(send.get(), Cancelled);
}

TEST(LocalChannel, EndsAWaitingEndWhenTheRunIsCancelled) {
  Cancellation cancellation;
  LocalChannel link(cancellation, 0, 1);
  double data = 0;
  auto recv = std::async(std::launch::async, [&] { link.recv({2, 1, DType::float64, &data, 1}); });

  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  cancellation.request();

  EXPECT_THROW(recv.get(), Cancelled);
  EXPECT_THROW(link.send({1, 2, DType::float64, &data, 1}), Cancelled);
}

TEST(LocalGroup, SumsInTheOrderOfTheMembersWithTheSameBitsForAll) {
  for (const std::uint32_t members : {2u, 3u, 4u}) {
    for (const std::size_t count : {1u, 15u, 16u, 17u, 1000u, 40001u}) {
      Cancellation cancellation;
      std::vector<std::uint32_t> ranks(members);
      std::iota(ranks.begin(), ranks.end(), 0);
      LocalGroup group(cancellation, ranks);
      std::vector<std::vector<float>> data(members, std::vector<float>(count));
      std::vector<float> expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::uint32_t m = 0; m < members; ++m) {
          data[m][i] = std::sin(static_cast<float>(1 + i * members + m)) * std::exp(float(m) * 3);
          expected[i] = m == 0 ? data[m][i] : expected[i] + data[m][i];
        }
      }

      const std::vector<std::string> errors = on_threads(members, [&](std::uint32_t m) {
        group.all_reduce(m, {7, DType::float32, data[m].data(), count});
      });

      for (std::uint32_t m = 0; m < members; ++m) {
        EXPECT_EQ(errors[m], "");
        EXPECT_EQ(std::memcmp(data[m].data(), expected.data(), count * sizeof(float)), 0);
      }
    }
  }
}

TEST(LocalGroup, AddsToEachMembersPartTheSumInTheOrderOfTheMembers) {
  for (const std::uint32_t members : {1u, 2u, 3u, 4u}) {
    for (const std::size_t part : {0u, 1u, 17u, 10001u}) {
      Cancellation cancellation;
      std::vector<std::uint32_t> ranks(members);
      std::iota(ranks.begin(), ranks.end(), 0);
      LocalGroup group(cancellation, ranks);
      const std::size_t count = part * members;
      std::vector<std::vector<float>> data(members, std::vector<float>(count));
      std::vector<std::vector<float>> parts(members, std::vector<float>(part, 0.5F));
      std::vector<float> expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::uint32_t m = 0; m < members; ++m) {
          data[m][i] = std::sin(static_cast<float>(1 + i * members + m)) * std::exp(float(m) * 3);
          expected[i] = m == 0 ? data[m][i] : expected[i] + data[m][i];
        }
        expected[i] = 0.5F + expected[i];
      }
      const std::vector<std::vector<float>> before = data;
      std::vector<std::size_t> moved(members);

      const std::vector<std::string> errors = on_threads(members, [&](std::uint32_t m) {
        moved[m] =
            group.reduce_scatter(m, {7, DType::float32, data[m].data(), count, parts[m].data()});
      });

      for (std::uint32_t m = 0; m < members; ++m) {
        EXPECT_EQ(errors[m], "");
        EXPECT_TRUE(std::equal(parts[m].begin(), parts[m].end(),
                               expected.begin() + static_cast<std::ptrdiff_t>(m * part)));
        EXPECT_EQ(moved[m], (members - 1) * part * sizeof(float));
      }
      EXPECT_EQ(data, before);
    }
  }
}

TEST(LocalGroup, GivesEveryMemberAllPartsWhereverItsOwnLies) {
  for (const bool in_place : {false, true}) {
    Cancellation cancellation;
    LocalGroup group(cancellation, {5, 6, 7});
    std::vector<std::string> parts = {"abc", "def", "ghi"};
    std::vector<std::string> wholes(3, std::string(9, '.'));
    for (std::uint32_t m = 0; in_place && m < 3; ++m) {
      wholes[m].replace(3 * m, 3, parts[m]);
    }
    std::vector<std::size_t> moved(3);

    on_threads(3, [&](std::uint32_t m) {
      const char* const part = in_place ? wholes[m].data() + 3 * m : parts[m].data();
      moved[m] = group.all_gather(m, {1, DType::boolean, part, 3, wholes[m].data()});
    });

    EXPECT_EQ(wholes, std::vector<std::string>(3, "abcdefghi"));
    EXPECT_EQ(moved, std::vector<std::size_t>(3, 6));
  }
}

TEST(LocalGroup, RefusesMembersThatDoDifferentThings) {
  Cancellation cancellation;
  LocalGroup group(cancellation, {4, 6});
  float data[2][8] = {}, part[8] = {};

  const std::vector<std::string> errors = on_threads(2, [&](std::uint32_t member) {
    if (member == 0) {
      group.reduce_scatter(0, {3, DType::float32, data[0], 8, part});
    } else {
      group.all_gather(1, {3, DType::float32, part, 4, data[1]});
    }
  });

  const std::string expected =
      "members of a collective differ: rank 4 scatters 8 float32 elements of tag 3, but rank 6 "
      "gathers 16 bytes of tag 3";
  EXPECT_EQ(errors[0], expected);
  EXPECT_EQ(errors[1], expected);
}

// The three operations in turn on one communicator, with members that dawdle.
TEST(LocalGroup, ScattersAndGathersAgainAndAgainWithoutMixingRounds) {
  Cancellation cancellation;
  LocalGroup group(cancellation, {0, 1, 2});
  std::vector<int> wrong(3, 0);

  on_threads(3, [&](std::uint32_t member) {
    for (int round = 0; round < 1000; ++round) {
      const auto tag = static_cast<std::uint64_t>(round);
      double whole[3] = {round + 0.0, round + 1.0, round + 2.0}, part = 1, sum = member;
      group.reduce_scatter(member, {tag, DType::float64, whole, 3, &part});
      wrong[member] += part != 1 + 3 * (round + member) ? 1 : 0;
      double all[3];
      group.all_gather(member, {tag, DType::float64, &part, 1, all});
      wrong[member] += all[0] != 1 + 3 * round || all[2] != 7 + 3 * round ? 1 : 0;
      group.all_reduce(member, {tag, DType::float64, &sum, 1});
      wrong[member] += sum != 3 ? 1 : 0;
    }
  });

  EXPECT_EQ(wrong, std::vector<int>(3, 0));
}

TEST(LocalGroup, ReducesAgainAndAgainWithoutMixingRounds) {
  Cancellation cancellation;
  LocalGroup group(cancellation, {0, 1, 2});
  std::vector<std::vector<double>> sums(3);

  on_threads(3, [&](std::uint32_t member) {
    for (int round = 0; round < 2000; ++round) {
      double value = round * 10 + member;
      group.all_reduce(member, {static_cast<std::uint64_t>(round), DType::float64, &value, 1});
      sums[member].push_back(value);
    }
  });

  for (const std::vector<double>& mine : sums) {
    ASSERT_EQ(mine.size(), 2000u);
    for (int round = 0; round < 2000; ++round) {
      ASSERT_EQ(mine[round], round * 30 + 3);
    }
  }
}

TEST(LocalGroup, RefusesMembersThatReduceDifferentThingsAndNamesThem) {
  Cancellation cancellation;
  LocalGroup group(cancellation, {4, 6});
  float data[2][8] = {};

  const std::vector<std::string> errors = on_threads(2, [&](std::uint32_t member) {
    group.all_reduce(member, {member == 0 ? 3u : 5u, DType::float32, data[member], 8});
  });

  const std::string expected =
      "members of a collective differ: rank 4 reduces 8 float32 elements of tag 3, but rank 6 "
      "reduces 8 float32 elements of tag 5";
  EXPECT_EQ(errors[0], expected);
  EXPECT_EQ(errors[1], expected);
}

TEST(LocalGroup, EndsMembersThatWaitWhenTheRunIsCancelled) {
  Cancellation cancellation;
  LocalGroup group(cancellation, {0, 1, 2});
  double data[2] = {1, 2};

  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancellation.request();
  });
  const std::vector<std::string> errors = on_threads(2, [&](std::uint32_t member) {
    group.all_reduce(member, {1, DType::float64, &data[member], 1});
  });
  canceller.join();

  EXPECT_EQ(errors, (std::vector<std::string>{"cancelled", "cancelled"}));
  EXPECT_EQ(data[0], 1);
}

// Members come at random times while a cancellation strikes: every round is whole or ended for all
// that had not passed it, and nothing hangs.
TEST(LocalGroup, LeavesNoRoundHalfDoneWhenCancelled) {
  for (int trial = 0; trial < 50; ++trial) {
    Cancellation cancellation;
    LocalGroup group(cancellation, {0, 1, 2});
    std::vector<std::vector<double>> seen(3);

    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(20 * trial));
      cancellation.request();
    });
    on_threads(3, [&](std::uint32_t member) {
      for (;;) {
        double value = 1;
        group.all_reduce(member, {1, DType::float64, &value, 1});
        seen[member].push_back(value);
      }
    });
    canceller.join();

    for (const std::vector<double>& mine : seen) {
      for (const double value : mine) {
        ASSERT_EQ(value, 3);
      }
      EXPECT_EQ(mine.size(), seen[0].size());
    }
  }
}

}  // namespace
}  // namespace piper
