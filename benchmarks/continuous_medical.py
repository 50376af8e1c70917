"""Four worlds of medicine with numbers for states: glucose, HIV therapy, repeated stays, chemotherapy.

Glucose and HIV follow published equations, stays and chemotherapy the idea of theirs. What is logged, observed and
limited is ours. Equations and constants were written from memory: compare with the papers before relying on them.
"""

import numpy as np

from checkrein import AtLeast, AtMost
from continuous_rollouts import Array, Costs, World, near, softmax

Generator = np.random.Generator
Stepped = tuple[Array, Costs, Array]


# Glucose: 15 waking hours of a patient with type 1 diabetes who decides on a bolus every hour. Compartments and
# parameters after Hovorka et al. (2004), "Nonlinear model predictive control of glucose concentration in subjects with
# type 1 diabetes", Physiol. Meas., for 75 kg; the sensitivity differs between patients and is hidden.
UNITS = np.array([0.0, 0.5, 1.0, 2.0, 3.5])
HOURS, MINUTES = 15, 5.0
MEALS = np.array([1, 5, 11])  # the hour of each, in which it may come or the next one
EGP, F01, VOLUME, K12 = 0.0161 * 75, 0.0097 * 75, 0.16 * 75, 0.066
RATES, SENSITIVITIES = (0.006, 0.06, 0.03), (51.2e-4, 8.2e-4, 520e-4)
SLOW, GUT, CLEARED, INSULIN_VOLUME = 55.0, 40.0, 0.138, 0.12 * 75
BASAL = 6.0  # mU/min, divided by the patient's sensitivity
LOW = 2.8  # mmol/l
RESCUE = 0.8 * 20 / 0.18  # mmol of glucose, taken at once by who is low


def glucose_begin(n: int, rng: Generator) -> Array:
    """(n, 15): two depots, insulin, three effects, glucose twice, gut twice, patient, basal, meal, hour, last."""
    sensitivity = np.exp(0.15 * rng.normal(size=n))
    basal = BASAL / sensitivity * np.exp(0.05 * rng.normal(size=n))
    insulin = basal / CLEARED / INSULIN_VOLUME
    effects = [sensitivity * strength * insulin for strength in SENSITIVITIES]
    glucose = VOLUME * np.clip(7.0 + 1.5 * rng.normal(size=n), 4.5, 12.0)
    second = effects[0] * glucose / (K12 + effects[1])
    nothing = np.zeros(n)
    hidden = [basal * SLOW, basal * SLOW, insulin, *effects, glucose, second, nothing, nothing, sensitivity, basal]
    return np.column_stack([*hidden, nothing, nothing, glucose])


def glucose_observe(hidden: Array) -> Array:
    """(n, 5)."""
    glucose, before = hidden[:, 6] / VOLUME, hidden[:, 14] / VOLUME
    on_board = (hidden[:, 0] + hidden[:, 1] - 2 * hidden[:, 11] * SLOW) / 1000
    return np.column_stack([glucose, glucose - before, on_board, hidden[:, 12], HOURS - hidden[:, 13]])


def glucose_step(hidden: Array, actions: Array, rng: Generator) -> Stepped:
    """Inject, eat what was announced (more or less), and go on for an hour."""
    s1, s2, insulin, x1, x2, x3, q1, q2, d1, d2, patient, basal, meal, hour, _ = hidden.T
    before, low, high = q1, np.zeros(len(q1)), np.zeros(len(q1))
    s1 = s1 + 1000 * UNITS[actions]
    d1 = d1 + 0.8 * meal / 0.18 * np.exp(0.15 * rng.normal(size=len(q1)))
    wanted = [patient * strength * rate for strength, rate in zip(SENSITIVITIES, RATES, strict=True)]
    liver = EGP * np.exp(0.08 * rng.normal(size=len(q1)))
    for _ in range(int(60 / MINUTES)):
        level = q1 / VOLUME
        outflow = x1 + (F01 * np.minimum(level / 4.5, 1.0) + 0.003 * VOLUME * np.maximum(level - 9, 0)) / q1
        q1_next = (q1 + MINUTES * (K12 * q2 + d2 / GUT + liver * np.maximum(1 - x3, 0))) / (1 + MINUTES * outflow)
        q2 = (q2 + MINUTES * x1 * q1) / (1 + MINUTES * (K12 + x2))
        x1, x2, x3 = (
            (x + MINUTES * gain * insulin) / (1 + MINUTES * rate)
            for x, gain, rate in zip((x1, x2, x3), wanted, RATES, strict=True)
        )
        insulin = (insulin + MINUTES * s2 / (SLOW * INSULIN_VOLUME)) / (1 + MINUTES * CLEARED)
        d1, d2 = d1 * (1 - MINUTES / GUT), d2 + MINUTES * (d1 - d2) / GUT
        s1, s2 = s1 + MINUTES * (basal - s1 / SLOW), s2 + MINUTES * (s1 - s2) / SLOW
        q1 = q1_next
        d1 = d1 + RESCUE * ((q1 < LOW * VOLUME) & (low == 0))
        low += q1 < LOW * VOLUME
        high += np.maximum(q1 / VOLUME - 8.0, 0.0) * MINUTES / 60
    hour = hour + 1
    meal = np.where(_mealtime(hour, rng), np.clip(20 + 60 * rng.random(len(q1)), 0, 80), 0.0)
    costs = {"high": high, "low": (low > 0) * 1.0, "units": UNITS[actions]}
    hidden = np.column_stack([s1, s2, insulin, x1, x2, x3, q1, q2, d1, d2, patient, basal, meal, hour, before])
    return hidden, costs, hour >= HOURS


def _mealtime(hour: Array, rng: Generator) -> Array:
    at = np.isin(hour, MEALS) * 0.6 + np.isin(hour, MEALS + 1) * 0.4
    return rng.random(len(hour)) < at


def glucose_behavior(observations: Array, hidden: Array) -> Array:  # noqa: ARG001
    """(n, A) about a unit per 30 g and per 6 mmol/l above 9, less what is on board."""
    glucose, _, on_board, meal, _ = observations.T
    return near(meal / 30 + (glucose - 9) / 6 - 0.4 * np.maximum(on_board, 0), UNITS, 0.45, uniform=0.01)


glucose = World(
    name="glucose",
    discount=1.0,
    horizon=HOURS,
    cut_off=False,
    features=("glucose", "change", "on board", "meal", "hours left"),
    levels=np.column_stack([UNITS, UNITS**2 / 3]),
    objective="high",
    constraints=(AtMost("low", 0.055), AtMost("units", 6.2)),
    begin=glucose_begin,
    observe=glucose_observe,
    step=glucose_step,
    behavior=glucose_behavior,
)


# HIV: reverse transcriptase and protease inhibitors, decided every 10 days. Equations and parameters of Adams et al.
# (2004), "Dynamic multidrug therapies for HIV", Math. Biosci. Eng.; actions as in Ernst et al. (2006),
# "Clinical data based optimal STI strategies for HIV", CDC. Patients differ in infection and in immune response.
RTI, PI = np.array([0.0, 0.7, 0.0, 0.7]), np.array([0.0, 0.0, 0.3, 0.3])
BURDEN = np.array([0.0, 0.7, 0.4, 1.0])
SICK = np.array([163573.0, 5.0, 11945.0, 46.0, 63919.0, 24.0])  # where the untreated come to rest
DAY = 0.5


def hiv_begin(n: int, rng: Generator) -> Array:
    """(n, 8): healthy and infected cells of two kinds, virus, immune cells, and two traits of the patient."""
    state = SICK * np.exp(np.array([0.3, 0.5, 0.5, 0.5, 0.8, 0.8]) * rng.normal(size=(n, 6)))
    return np.column_stack([state, np.exp(0.1 * rng.normal(size=(n, 2)))])


def hiv_observe(hidden: Array) -> Array:
    """(n, 6) logarithms to base 10."""
    return np.log10(hidden[:, :6])


def hiv_step(hidden: Array, actions: Array, rng: Generator) -> Stepped:
    """Go on for 10 days; losses are taken implicitly, so that nothing becomes negative."""
    t1, t2, i1, i2, virus, immune, infecting, responding = hidden.T
    k1 = 8e-7 * infecting * (1 - RTI[actions])
    k2 = 1e-4 * infecting * (1 - 0.34 * RTI[actions])
    made = 100 * 0.7 * (1 - PI[actions])
    for _ in range(int(10 / DAY)):
        infected = i1 + i2
        kill = 0.7 + 1e-5 * immune
        grow = 0.3 * responding * infected / (infected + 100)
        fade = 0.25 * infected / (infected + 500) + 0.1
        virus_next = (virus + DAY * made * infected) / (1 + DAY * (13 + k1 * t1 + k2 * t2))
        i1, i2 = (i1 + DAY * k1 * virus * t1) / (1 + DAY * kill), (i2 + DAY * k2 * virus * t2) / (1 + DAY * kill)
        t1, t2 = (
            (t1 + DAY * 1e4) / (1 + DAY * (0.01 + k1 * virus)),
            (t2 + DAY * 31.98) / (1 + DAY * (0.01 + k2 * virus)),
        )
        immune = (immune + DAY * (1 + grow * immune)) / (1 + DAY * fade)
        virus = virus_next
    state = np.column_stack([t1, t2, i1, i2, virus, immune])
    state = np.maximum(state * np.exp(0.1 * rng.normal(size=state.shape)), 1e-2)
    costs = {"virus": np.log10(1 + state[:, 4] / 100), "burden": BURDEN[actions], "cells": state[:, 0] / 1e6}
    return np.column_stack([state, infecting, responding]), costs, np.zeros(len(state), dtype=bool)


def hiv_behavior(observations: Array, hidden: Array) -> Array:  # noqa: ARG001
    """(n, A) more drugs the more virus, with much habit and chance in which."""
    load = observations[:, 4] - 4
    scores = np.column_stack([0.6 - 0.5 * load, 0.0 * load, 0.2 + 0.0 * load, 0.4 + 0.5 * load])
    return softmax(scores, uniform=0.05)


hiv = World(
    name="hiv",
    discount=0.95,
    horizon=30,
    cut_off=True,
    features=("cells 1", "cells 2", "infected 1", "infected 2", "virus", "immune"),
    levels=np.column_stack([RTI / 0.7, PI / 0.3, (RTI > 0) & (PI > 0)]) * 1.0,
    objective="virus",
    constraints=(AtMost("burden", 9.15), AtLeast("cells", 6.0)),
    begin=hiv_begin,
    observe=hiv_observe,
    step=hiv_step,
    behavior=hiv_behavior,
)


# Stays: a patient with heart failure comes again and again; a diuretic is dosed daily until the patient is dry or 12
# days are over. Fluid and kidney are indirect responses (Dayneka, Garzo & Jusko 1993, "Comparison of four basic models
# of indirect pharmacodynamic responses"), loosely, to a drug whose effect saturates. How a patient responds is
# hidden, the same in every stay, and only partly seen in a note about earlier stays.
DOSES = np.array([0.0, 1.0, 2.0, 4.0])
DAYS = 12


def stays_begin(n: int, rng: Generator) -> Array:
    """(n, 8): patient, response, frailty, note, fluid, kidney, drug, day; stays of one patient are together."""
    sizes = 1 + rng.poisson(2.0, size=n)
    patient = np.repeat(np.arange(n), sizes)[:n]
    response, frailty = np.exp(0.3 * rng.normal(size=n))[patient], np.exp(0.3 * rng.normal(size=n))[patient]
    note = np.log(response) + 0.3 * rng.normal(size=n)
    fluid, kidney = 3 + np.abs(2.5 * rng.normal(size=n)), 1.1 * np.exp(0.2 * rng.normal(size=n)) * frailty**0.3
    return np.column_stack([patient, response, frailty, note, fluid, kidney, np.zeros(n), np.zeros(n)])


def stays_observe(hidden: Array) -> Array:
    """(n, 5)."""
    return np.column_stack([hidden[:, 4], hidden[:, 5], hidden[:, 6], hidden[:, 3], DAYS - hidden[:, 7]])


def stays_step(hidden: Array, actions: Array, rng: Generator) -> Stepped:
    """Go on for a day; who leaves wet or with a strained kidney pays for it then."""
    patient, response, frailty, note, fluid, kidney, drug, day = hidden.T
    drug = 0.3 * drug + DOSES[actions]
    effect = drug / (drug + 2.0 / response)
    excess = np.maximum(fluid, 0)
    fluid = fluid + 0.35 - 2.2 * effect * (0.3 + excess / (excess + 1.5)) + 0.3 * rng.normal(size=len(day))
    dryness = 1 / (1 + np.exp(1.5 * (fluid - 1)))
    strain = 0.02 + 0.12 * effect * frailty * (0.4 + 1.6 * dryness)
    kidney = (kidney + 1.1 * (strain + 0.13)) / 1.15 * np.exp(0.04 * rng.normal(size=len(day)))
    day = day + 1
    ended = (fluid < 0.5) | (day >= DAYS)
    worse = np.maximum(kidney - 1.5, 0)
    costs = {"days": 1 + ended * 2.0 * np.maximum(fluid - 0.5, 0), "kidney": worse, "dose": DOSES[actions]}
    return np.column_stack([patient, response, frailty, note, fluid, kidney, drug, day]), costs, ended


def stays_behavior(observations: Array, hidden: Array) -> Array:  # noqa: ARG001
    """(n, A) about half the litres that are left, less where the kidney suffers."""
    fluid, kidney, _, _, _ = observations.T
    return near(0.5 + 0.3 * np.clip(fluid, 0, 8) - 0.8 * (kidney - 1.2), DOSES, 1.0, uniform=0.06)


stays = World(
    name="stays",
    discount=1.0,
    horizon=DAYS,
    cut_off=False,
    features=("fluid", "kidney", "drug", "note", "days left"),
    levels=np.column_stack([DOSES, DOSES**2 / 4]),
    objective="days",
    constraints=(AtMost("kidney", 0.11), AtMost("dose", 13.0)),
    begin=stays_begin,
    observe=stays_observe,
    step=stays_step,
    behavior=stays_behavior,
    clusters=lambda hidden: hidden[:, 0].astype(int),
)


# Chemotherapy: five monthly doses, tumor and toxicity, death between, after Zhao, Kosorok & Zeng (2009), "Reinforcement
# learning design for cancer clinical trials", Stat. Med.: each of the two makes the other grow, both may
# kill. Ours: a kill that saturates (Emax), toxicity by the square of the dose, noise, and patients who differ in both:
# a biomarker tells how tumors respond, frailty how much a dose harms. Behavior ignores the two.
PORTIONS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
MONTHS = 5


def oncology_begin(n: int, rng: Generator) -> Array:
    """(n, 6): toxicity, tumor, tumor as it began, biomarker, frailty, month."""
    toxicity, tumor = rng.random(n), 1 + 2 * rng.random(n)
    return np.column_stack([toxicity, tumor, tumor, rng.random((n, 2)), np.zeros(n)])


def oncology_observe(hidden: Array) -> Array:
    """(n, 6)."""
    return np.column_stack([hidden[:, :5], MONTHS - hidden[:, 5]])


def oncology_step(hidden: Array, actions: Array, rng: Generator) -> Stepped:
    """Go on for a month; a death counts as a tumor of 3 in each month that is lost."""
    toxicity, tumor, tumor_0, marker, frailty, month = hidden.T
    dose, noise = PORTIONS[actions], 0.1 * rng.normal(size=(2, len(month)))
    killed = 1.6 * dose / (dose + 0.5) * (0.2 + 1.6 * marker)
    grown = tumor + (tumor > 0) * (0.15 * toxicity + 0.4 - killed + noise[0])
    harmed = toxicity + 0.1 * np.maximum(tumor, tumor_0) + 1.8 * dose**2 * (0.2 + 1.6 * frailty) - 0.7 + noise[1]
    tumor, toxicity, month = np.maximum(grown, 0), np.maximum(harmed, 0), month + 1
    dies = rng.random(len(month)) < 1 - np.exp(-np.exp(-5.5 + 0.5 * toxicity + 0.5 * tumor))
    costs = {"tumor": tumor + dies * 3.0 * (MONTHS - month), "toxicity": toxicity, "death": dies * 1.0}
    hidden = np.column_stack([toxicity, tumor, tumor_0, marker, frailty, month])
    return hidden, costs, dies | (month >= MONTHS)


def oncology_behavior(observations: Array, hidden: Array) -> Array:  # noqa: ARG001
    """(n, A) about the same dose for all, a little more the larger the tumor: it fails its limit."""
    tumor = observations[:, 1]
    return near(0.6 + 0.05 * (tumor - 1), PORTIONS, 0.35, uniform=0.05)


oncology = World(
    name="oncology",
    discount=1.0,
    horizon=MONTHS,
    cut_off=False,
    features=("toxicity", "tumor", "tumor at first", "biomarker", "frailty", "months left"),
    levels=np.column_stack([PORTIONS, PORTIONS**2]) * 2,
    objective="tumor",
    constraints=(AtMost("toxicity", 5.9), AtMost("death", 0.138)),
    begin=oncology_begin,
    observe=oncology_observe,
    step=oncology_step,
    behavior=oncology_behavior,
)
