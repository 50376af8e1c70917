"""What columns are called, by the role that they have; what stands first is looked for first."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TRAJECTORY = _words("episode trajectory traj trip session stay admission")  # an episode even where it has one row
NAMED_EPISODES = (*TRAJECTORY, *_words("visit patient subject user customer person individual firm"))
EPISODE = (*NAMED_EPISODES, "id", "nr", "run", "key")
CLUSTER = _words("cluster patient subject customer client user person hospital site school")
STEP = _words(
    "step timestep t hour day week month year date time start begin stage seq visit round period wave timestamp tstart "
    "time0 turn"
)
TERMINAL = _words("terminal terminated done ended end final last")
SURE_ACTION = _words("action treatment decision")
ACTION = (
    *SURE_ACTION,
    *_words("arm arms offer choice intervention dose treat therapy item ad product recommendation transplant"),
    *_words("assignment assigned training train grant"),
)
PROPENSITY = _words("propensity pscore probability prob")
LESS_FIRST = _words("cost death died dead mortality loss")
LESS = (*LESS_FIRST, *_words("event arrest relapse readmission churn default harm failure"))
MORE_FIRST = _words("reward return revenue")
MORE = (*MORE_FIRST, *_words("profit click clicked conversion converted purchase sales survival survived"))
MORE = (*MORE, *_words("wage lwage earnings income"))
UNCLEAR = _words("outcome response target label y status cens censor censored")
COST = _words("cost costs penalty harm risk price spend usage dose fee")
FOLLOW_UP = _words("time days weeks week duration followup survtime los stop time1")
AFTER = _words("next after post future discharge followup")
INDEX = ("", *_words("index unnamed_0 column_0 rownames rowname row"))
CODES = _words("id nr code number num no")
