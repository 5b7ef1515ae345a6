"""Places that episodes came by: how they are thinned, counted, chosen and kept."""

import json

import numpy as np
import pytest

from rollin.curriculum.places import GOAL, Places


def near(outcomes, contexts):
    return np.abs(outcomes[:, None, 0] - contexts[None, :, 0]) <= 0.5


def line(*values):
    return np.array(values, float)[:, None]


def places_of(*episodes, recent=10, most=256):
    places = Places(np.array([9.0]), near, recent, most)
    for episode in episodes:
        places.add(episode, episode)
    return places


def test_a_place_is_new_where_nothing_known_is_fulfilled():
    places = places_of(line(0.0, 0.4, 1.0, 1.2, 0.0))
    # 0.4 is near 0.0, and 1.2 near 1.0
    assert [c.item() for c in places.contexts] == [9.0, 0.0, 1.0]
    assert places.fewest == [None, 1, 3]
    places.add(line(1.4, 9.2), line(1.4, 9.2))
    assert len(places.contexts) == 3  # 9.2 fulfils the goal, which is known
    assert places.fewest == [2, 1, 1]
    assert places.recent == [[1, 2], [0, 2]]
    assert places.shares().tolist() == [0.5, 0.5, 1.0]


def test_hidden_steps_count_and_contexts_outside_the_space_are_left_out():
    places = places_of()
    outcomes, contexts = line(1.0, 2.0), np.array([[np.nan], [2.0]])
    places.add(outcomes, contexts, before=7)
    assert [c.item() for c in places.contexts] == [9.0, 2.0]
    assert places.fewest == [None, 9]


def test_an_outcome_that_does_not_fulfil_its_own_context_makes_no_place():
    places = places_of()
    places.add(line(1.0), line(5.0))
    assert len(places.contexts) == 1
    assert places.recent == [[]]


def test_the_farthest_takes_the_most_steps_of_those_seen_now_and_then():
    always, sometimes, once = line(0, 1), line(0, 1, 2), line(0, 1, 2, 3)
    places = places_of(*[always] * 5, *[sometimes] * 4, once)
    assert places.shares().tolist() == [0.0, 1.0, 1.0, 0.5, 0.1]
    assert places.farthest(0.1, 0.9) == 4
    assert places.farthest(0.2, 0.9) == 3
    assert places.farthest(0.2, 0.9, above=3) is None
    assert places.farthest(0.1, 0.9, without=[4]) == 3
    assert places.between(1, 3) == 3
    assert places.between(1, 2.5) == 2
    assert places.between(4, 9) is None


def test_the_goal_comes_before_all_others_once_it_is_seen():
    places = places_of(line(9.0), line(0, 1, 2))
    assert places.farthest(0.1, 0.9) == GOAL


def test_a_full_net_lets_go_of_what_is_nearest():
    places = places_of(line(0, 1, 2), most=4)
    places.add(line(5, 6), line(5, 6), before=7, kept=[3])
    # 0 and then 1 take the fewest steps
    assert [c.item() for c in places.contexts] == [9.0, 5.0, 6.0, 2.0]
    assert places.fewest == [None, 8, 9, 3]
    assert places.recent == [[3], [1, 2]]
    places.add(line(7), line(7), kept=[1, 2, 3])
    assert len(places.contexts) == 4  # no room


def test_a_state_goes_on_as_it_was():
    places = places_of(line(0, 1, 2), line(0, 1))
    again = places_of()
    again.set_state(json.loads(json.dumps(places.get_state())))
    for net in (places, again):
        net.add(line(0, 2, 4), line(0, 2, 4))
    assert again.get_state() == places.get_state()
    assert again.farthest(0.1, 0.9) == places.farthest(0.1, 0.9)


@pytest.mark.parametrize("name", ["recent", "most"])
def test_sizes_must_be_positive(name):
    with pytest.raises(Exception, match=f"{name} must be at least"):
        Places(np.zeros(1), near, **{name: 0})


def test_the_goal_comes_first_however_few_steps_it_takes():
    """A branch that leads farther than the goal does not hide it."""
    branch, goal = line(0, 1, 2, 3, 4), line(0, 9)
    places = places_of(branch, goal)
    assert places.steps_to(GOAL) == 2
    assert places.farthest(0.1, 0.9, above=5) == GOAL
    assert places.farthest(0.1, 0.9, above=5, without=[GOAL]) is None
