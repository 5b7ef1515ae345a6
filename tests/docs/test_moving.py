"""The film of the README shows what its records say, and is small enough to be loaded."""

import numpy as np
from docs.pages import picture_path
from PIL import Image, ImageColor

from docs import moving
from rollin.envs.point_umaze import PATH, POINT, UMAZE, goal_reward
from rollin.runs.records import read_records


def test_the_runs_are_of_one_seed_and_differ_as_the_captions_say() -> None:
    scratch, adaptive = read_records(moving.RESULTS)
    assert scratch.seed == adaptive.seed == 30
    assert scratch.completed is None
    assert adaptive.completed is not None
    assert scratch.steps == adaptive.steps == 300_000
    assert scratch.processor == adaptive.processor != ""


def test_only_one_of_the_ways_ends_at_the_goal_and_none_goes_through_walls() -> None:
    (x0, x1, y0, y1), bounds = UMAZE.blocks[0], UMAZE.bounds
    earned = []
    for panel in moving.PANELS:
        x, y = moving.recorded(panel.run).places.T
        assert len(x) > moving.STEPS
        assert bounds[0] <= x.min()
        assert x.max() <= bounds[1]
        assert not ((x > x0) & (x < x1) & (y > y0) & (y < y1)).any()
        earned.append(float(goal_reward([x[moving.STEPS], y[moving.STEPS]], PATH[-1])))
    assert earned[0] == 0 < earned[1]


def test_the_file_is_small_and_its_point_moves() -> None:
    path = picture_path("moving")
    assert path.stat().st_size < 2_000_000
    colour = np.array(ImageColor.getrgb(POINT))
    with Image.open(path) as film:
        assert film.size == (moving.WIDTH, moving.HEIGHT)
        places = []
        for number in (0, moving.STEPS // 2):
            film.seek(number)
            right = np.asarray(film.convert("RGB"))[62:446, 408:].astype(int)
            rows, columns = np.nonzero((np.abs(right - colour) < 24).all(-1))
            places.append((rows.mean(), columns.mean()))
    begun, then = places
    assert begun[0] > 300  # below the wall, in pixels from the top
    assert then[0] < 150
