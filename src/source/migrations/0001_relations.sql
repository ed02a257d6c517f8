-- The relations that exportd reads, for an installation that has none of its own: the demo, tests, a fresh start.
-- Where they exist already (or are views over something else), the settings EXPORTD_*_RELATION name them instead.
create table public.events (
  team_id integer not null,
  uuid uuid not null,
  event text not null,
  distinct_id text not null,
  person_id uuid,
  properties jsonb not null default '{}',
  person_properties jsonb,
  elements_chain text not null default '',
  timestamp timestamptz not null,
  created_at timestamptz not null default clock_timestamp(),
  inserted_at timestamptz not null default clock_timestamp()
);
create index events_team_inserted on public.events (team_id, inserted_at, uuid);

create table public.persons (
  team_id integer not null,
  id uuid not null,
  properties jsonb not null default '{}',
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  version bigint not null default 0,
  is_deleted boolean not null default false,
  primary key (team_id, id)
);
create index persons_team_updated on public.persons (team_id, updated_at);

create table public.person_distinct_ids (
  team_id integer not null,
  distinct_id text not null,
  person_id uuid not null,
  version bigint not null default 0,
  updated_at timestamptz not null default clock_timestamp(),
  is_deleted boolean not null default false,
  primary key (team_id, distinct_id)
);
-- As exportd pages through persons: distinct ids in the order of their bytes, whatever the database's own order is.
create index person_distinct_ids_team_updated
  on public.person_distinct_ids (team_id, updated_at, distinct_id collate "C");
create index person_distinct_ids_team_person on public.person_distinct_ids (team_id, person_id);

create table public.session_replay_events (
  team_id integer not null,
  session_id text not null,
  distinct_id text not null,
  min_first_timestamp timestamptz not null,
  max_last_timestamp timestamptz not null,
  first_url text,
  click_count bigint not null default 0,
  keypress_count bigint not null default 0,
  mouse_activity_count bigint not null default 0,
  active_milliseconds bigint not null default 0,
  console_log_count bigint not null default 0,
  console_warn_count bigint not null default 0,
  console_error_count bigint not null default 0,
  size bigint not null default 0,
  primary key (team_id, session_id)
);
