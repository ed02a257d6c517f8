-- The relations that exportd reads, for an installation without its own: the demo, tests, a fresh start.
-- Where they exist already (tables, or views of other tables), the settings EXPORTD_*_RELATION name them instead.

-- Events are partitioned by the month of their timestamp, so that a query reads only its months and old months can be
-- detached. Rows of other months are in the default partition.
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
) partition by range (timestamp);
create table public.events_default partition of public.events default;

-- Exports page by it.
create index events_team_inserted on public.events (team_id, inserted_at, uuid);
-- Queries filter by time; by name and time (with what tells the person, so that counting persons reads no rows); by person,
-- distinct id or session.
create index events_team_timestamp on public.events (team_id, timestamp);
create index events_team_event on public.events (team_id, event, timestamp)
  include (person_id, distinct_id);
create index events_team_person on public.events (team_id, person_id, timestamp);
create index events_team_distinct_id on public.events (team_id, distinct_id, timestamp);
create index events_team_session on public.events (team_id, (properties ->> '$session_id'), timestamp);
-- A search by a property of the person reads the events that carry such properties themselves, and no others.
create index events_team_carrying on public.events (team_id, timestamp) where person_properties is not null;
-- Tells the planner how many sessions some events have, so that it chooses between a lookup of each and a scan.
create statistics public.events_session on (properties ->> '$session_id') from public.events;

-- Creates the missing monthly partitions, from the previous month to `ahead` months from now, and returns their names. A
-- month with rows in the default partition stays there.
create function public.exportd_add_event_months(ahead integer) returns setof text language plpgsql as $$
declare
  month timestamp;
  name text;
  month_start timestamptz;
  month_end timestamptz;
begin
  perform pg_advisory_xact_lock(hashtext('exportd_add_event_months'));
  for number in -1 .. ahead loop
    month := date_trunc('month', now() at time zone 'UTC') + interval '1 month' * number;
    name := 'events_' || to_char(month, 'YYYY_MM');
    month_start := month at time zone 'UTC';
    month_end := (month + interval '1 month') at time zone 'UTC';
    continue when to_regclass('public.' || name) is not null or exists (
      select from public.events_default where timestamp >= month_start and timestamp < month_end
    );
    execute format('create table public.%I partition of public.events for values from (%L) to (%L)',
      name, month_start, month_end);
    return next name;
  end loop;
end
$$;

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
  -- Queries join it to events; with the person it is read without the rows.
  primary key (team_id, distinct_id) include (person_id, is_deleted)
);
-- Exports page through persons in this order: distinct ids by their bytes, whatever the collation of the database.
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

-- The persons of each static cohort. A person is in it once; the name is that of the cohort.
create table public.cohort_people (
  team_id integer not null,
  cohort_id bigint not null,
  cohort_name text,
  person_id uuid not null,
  primary key (team_id, cohort_id, person_id)
);

-- Organisations, teams and other groups, which events refer to as `$group_0` to `$group_4`.
create table public.groups (
  team_id integer not null,
  group_type_index integer not null,
  group_key text not null,
  group_properties jsonb not null default '{}',
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  primary key (team_id, group_type_index, group_key)
);
