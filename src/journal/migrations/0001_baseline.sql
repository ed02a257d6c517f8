-- The control database of exportd 0.2.0, without its read models: src/projections creates those, and `exportd rebuild`
-- folds them from the journal. Nothing here can be rebuilt.
create schema if not exists exportd;

-- Journal and commands ------------------------------------------------------------------------------------------------

create table exportd.journal_streams (
  stream_type text not null,
  stream_id uuid not null,
  -- Number of events in the stream. Appends lock this row.
  version bigint not null default 0,
  created_at timestamptz not null default clock_timestamp(),
  -- When a digest replaced the stream. Its events no longer count, and may be deleted.
  collapsed_at timestamptz,
  primary key (stream_type, stream_id)
);
create index journal_streams_collapsed on exportd.journal_streams (stream_type, stream_id) where collapsed_at is not null;

create table exportd.journal_events (
  global_position bigint generated always as identity primary key,
  stream_type text not null,
  stream_id uuid not null,
  stream_version bigint not null,
  -- UUIDv5 of stream, cause and ordinal, which makes appends idempotent.
  event_id uuid not null unique,
  cause text not null,
  event_type text not null,
  schema_version integer not null default 1,
  data jsonb not null,
  recorded_at timestamptz not null default clock_timestamp(),
  -- Ids of streams are unique among all types.
  unique (stream_id, stream_version),
  foreign key (stream_type, stream_id) references exportd.journal_streams
);
-- What people and exportd changed about an export, without the event that each interval adds.
create index journal_events_history on exportd.journal_events (stream_id, stream_version)
  where stream_type = 'batch_export' and event_type not in ('IntervalScheduled', 'IntervalsSkipped', 'HistoryCollapsed');
-- A step of the schedule before a skipped range is never deleted.
create index journal_events_skipped on exportd.journal_events (stream_id, (data ->> 'start'))
  where event_type = 'IntervalsSkipped';

create function exportd.reject_change() returns trigger language plpgsql as $$
begin
  raise exception 'exportd.% is append-only: % is not allowed', tg_table_name, tg_op using errcode = 'restrict_violation';
end
$$;
create trigger journal_events_append_only before truncate on exportd.journal_events
  for each statement execute function exportd.reject_change();
-- An erasure replaces the keys of erased persons, which are the last keys of pages and files.
create trigger journal_events_unchanged before update on exportd.journal_events
  for each statement when (current_setting('exportd.erasing', true) is distinct from 'on')
  execute function exportd.reject_change();

-- The only ways out of the journal: events of a stream that a digest has replaced, and steps of the schedule once the stream of
-- their run has gone that way.
create function exportd.keep_event() returns trigger language plpgsql as $$
begin
  if exists (
    select from exportd.journal_streams stream
    where stream.collapsed_at is null and (stream.stream_type, stream.stream_id) = (old.stream_type, old.stream_id)
  ) and (old.event_type <> 'IntervalScheduled' or exists (
    select from exportd.journal_streams run
    where run.collapsed_at is null and run.stream_type = 'run' and run.stream_id = (old.data ->> 'run_id')::uuid
  )) then
    raise exception 'exportd.% is append-only: % is not allowed', tg_table_name, tg_op using errcode = 'restrict_violation';
  end if;
  return old;
end
$$;
create trigger journal_events_keep before delete on exportd.journal_events
  for each row execute function exportd.keep_event();

-- Commands for batch exports and their outcomes. Bodies contain no secrets: an update refers to a stored config version.
create table exportd.commands (
  id uuid primary key,
  batch_export_id uuid not null,
  team_id integer not null,
  name text not null,
  body jsonb not null default '{}',
  -- HMAC of the request, if it has an Idempotency-Key. Detects an Idempotency-Key that is reused with another body.
  fingerprint text not null default '',
  idempotency_key text,
  -- Id of the user who sent it; null for a manual signal.
  user_id integer,
  -- The W3C `traceparent` of the request that stored it. Workers continue that trace.
  trace_parent text,
  status text not null default 'pending' check (status in ('pending', 'applied', 'no-op', 'rejected', 'withdrawn')),
  outcome jsonb,
  position bigint generated always as identity,
  created_at timestamptz not null default clock_timestamp(),
  decided_at timestamptz
);
create unique index commands_idempotency on exportd.commands (team_id, idempotency_key) where idempotency_key is not null;
create index commands_pending on exportd.commands (batch_export_id, position) where status = 'pending';
create index commands_withdrawn on exportd.commands (created_at) where status = 'withdrawn';
create index commands_decided on exportd.commands (created_at) where decided_at is not null;

-- Projects, users and API keys ----------------------------------------------------------------------------------------

create table exportd.projects (
  -- Equals team_id in the project's source rows.
  id integer generated by default as identity primary key,
  name text not null,
  timezone text not null default 'UTC',
  week_start_day text not null default 'sunday' check (week_start_day in ('sunday', 'monday')),
  test_account_filters jsonb not null default '[]',
  -- 21: everyone in the project may edit dashboards; 37: only collaborators.
  dashboard_restriction_level integer not null default 21 check (dashboard_restriction_level in (21, 37)),
  -- Identifies the project to AWS when exportd assumes a role for it.
  external_id text not null unique default 'exportd-' || gen_random_uuid(),
  created_at timestamptz not null default clock_timestamp()
);

create table exportd.users (
  id integer generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  distinct_id text not null unique,
  first_name text not null default '',
  last_name text not null default '',
  email text not null unique,
  is_email_verified boolean not null default false,
  mascot_config jsonb not null default '{}',
  role_at_organization text not null default '',
  created_at timestamptz not null default clock_timestamp()
);

-- A proxy names users by their address.
create index users_email on exportd.users (lower(email));

create table exportd.api_keys (
  id uuid primary key default gen_random_uuid(),
  user_id integer not null references exportd.users,
  -- The projects that it gives access to.
  project_ids integer[] not null check (cardinality(project_ids) > 0),
  name text not null default '',
  -- The first characters of the key, by which its owner recognizes it.
  prefix text not null,
  -- SHA-256 of the key. The key itself is displayed once and not stored.
  key_hash bytea not null unique,
  scopes text[] not null,
  -- The user who created it with the API; null for the command line.
  created_by integer references exportd.users on delete set null,
  -- The key that it replaces.
  rotated_from uuid references exportd.api_keys on delete set null,
  created_at timestamptz not null default clock_timestamp(),
  -- Null: it does not expire.
  expires_at timestamptz,
  -- To the minute.
  last_used_at timestamptz,
  revoked_at timestamptz
);
create index api_keys_projects on exportd.api_keys using gin (project_ids);

-- Browsers that are signed in to the console.
create table exportd.console_sessions (
  id uuid primary key default gen_random_uuid(),
  -- SHA-256 of the token in the cookie.
  token_hash bytea not null unique,
  -- The key that it was started with: it has its rights, and ends with it.
  key_id uuid not null references exportd.api_keys on delete cascade,
  user_agent text not null,
  address text not null,
  created_at timestamptz not null default clock_timestamp(),
  -- To the minute.
  last_seen_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);
create index console_sessions_key on exportd.console_sessions (key_id);

-- Who did what, beside the journal. EXPORTD_AUDIT_RETENTION ends it.
create table exportd.audit_events (
  id bigint generated always as identity primary key,
  recorded_at timestamptz not null default clock_timestamp(),
  -- The project of the caller; null for commands that belong to none.
  team_id integer,
  user_id integer,
  key_id uuid,
  address text,
  client text,
  action text not null,
  object text,
  outcome text not null check (outcome in ('done', 'accepted', 'failed')),
  status integer,
  detail text,
  -- Each field of the object that was set to another value, without the values of secrets.
  changes jsonb
);
create index audit_events_team on exportd.audit_events (team_id, id);
create index audit_events_changes on exportd.audit_events (object, id) where changes is not null;
create index audit_events_age on exportd.audit_events (recorded_at);
create trigger audit_events_append_only before update or truncate on exportd.audit_events
  for each statement execute function exportd.reject_change();
create trigger audit_events_keep_recent before delete on exportd.audit_events
  for each row when (old.recorded_at > clock_timestamp() - interval '23 hours') execute function exportd.reject_change();

-- Destinations and logs -----------------------------------------------------------------------------------------------

create table exportd.destination_configs (
  batch_export_id uuid not null,
  version integer not null,
  destination_type text not null,
  -- Fields that everyone who can read the export may see.
  config jsonb not null,
  -- Secret fields, each encrypted separately; the API never returns them.
  secrets jsonb not null default '{}',
  -- When they were erased, because no run can need them any more.
  secrets_erased_at timestamptz,
  -- The dialect query that selects the columns: its text, its columns and everything its meaning depends on.
  row_query json,
  -- The key of its circuit in destination_circuits.
  circuit text,
  -- Hash of the rows that it selects. Exports of a project with equal hashes are compared with one read of the source.
  selection_hash text,
  created_at timestamptz not null default clock_timestamp(),
  primary key (batch_export_id, version)
);
create trigger destination_configs_append_only before truncate on exportd.destination_configs
  for each statement execute function exportd.reject_change();

-- The configs of an export stay as long as its stream.
create function exportd.keep_config() returns trigger language plpgsql as $$
begin
  if not exists (
    select from exportd.journal_streams stream
    where stream.stream_type = 'batch_export' and stream.stream_id = old.batch_export_id and stream.collapsed_at is not null
  ) then
    raise exception 'exportd.% is append-only: % is not allowed', tg_table_name, tg_op using errcode = 'restrict_violation';
  end if;
  return old;
end
$$;
create trigger destination_configs_keep_all before delete on exportd.destination_configs
  for each row execute function exportd.keep_config();

-- A version stays as it is, except that its secrets are encrypted again under another key, or erased.
create function exportd.keep_config_version() returns trigger language plpgsql as $$
declare
  secret_columns constant text[] := array['secrets', 'secrets_erased_at'];
  fields jsonb := (select coalesce(jsonb_agg(field order by field), '[]') from jsonb_object_keys(old.secrets) field);
begin
  if to_jsonb(new) - secret_columns = to_jsonb(old) - secret_columns and old.secrets_erased_at is null then
    if new.secrets_erased_at is not null and new.secrets = '{}' then
      return new;
    end if;
    if new.secrets_erased_at is null
      and fields = (select coalesce(jsonb_agg(field order by field), '[]') from jsonb_object_keys(new.secrets) field)
    then
      return new;
    end if;
  end if;
  raise exception 'exportd.% is append-only: only its secrets may be encrypted again or erased', tg_table_name
    using errcode = 'restrict_violation';
end
$$;
create trigger destination_configs_keep before update on exportd.destination_configs
  for each row execute function exportd.keep_config_version();

-- Destination configs under test, stored here because workflow histories must not contain them. A test deletes its config
-- when it ends; the next test deletes those older than an hour.
create table exportd.destination_tests (
  id uuid primary key,
  -- The id that the secrets are sealed for: the export that owns them, or the test itself.
  owner_id uuid not null,
  team_id integer not null,
  destination_type text not null,
  config jsonb not null,
  secrets jsonb not null,
  created_at timestamptz not null default clock_timestamp()
);
create index destination_tests_age on exportd.destination_tests (created_at);

-- How the store of a location behaves, found by destination tests and exports; null is unknown.
create table exportd.store_traits (
  -- Server and bucket, shared by all exports of a project to them.
  team_id integer not null,
  location text not null,
  conditional_put boolean,
  -- When, and in which control database, the store was last seen to refuse an overwrite. Null: to be seen again.
  confirmed_at timestamptz,
  confirmed_in text,
  -- Since when a store overwrites that refused to do so before; null after a destination test.
  overwrites_since timestamptz,
  conditional_complete boolean,
  equal_parts boolean,
  missing_key text check (missing_key in ('not_found', 'denied')),
  checksums boolean,
  versioned boolean,
  demands_checksums boolean,
  -- The response header Server.
  server text,
  found_at timestamptz not null default clock_timestamp(),
  primary key (team_id, location)
);

-- Whether the destination of exports responds, as all workers share it. No row: no request was sent yet.
create table exportd.destination_circuits (
  -- Digest of endpoint, region and bucket; see `DestinationType.circuitOf`.
  destination text primary key,
  -- The latest response, recorded every few seconds.
  responded_at timestamptz,
  -- Set while the circuit is open: since when, and the latest error as a message for users.
  opened_at timestamptz,
  error text,
  -- When an open circuit is probed next, and how long after the previous probe.
  next_probe_at timestamptz,
  probe_delay_ms float8 not null default 0,
  -- When it was last closed. A circuit that opens again soon keeps its delay.
  closed_at timestamptz,
  -- The lease of the worker that probes it.
  probe_started_at timestamptz,
  leased_until timestamptz
);

create table exportd.log_lines (
  id bigint generated always as identity primary key,
  team_id integer not null,
  batch_export_id uuid not null,
  run_id uuid,
  level text not null check (level in ('DEBUG', 'INFO', 'WARNING', 'ERROR')),
  message text not null,
  timestamp timestamptz not null default clock_timestamp()
);
create index log_lines_export on exportd.log_lines (batch_export_id, timestamp desc, id desc);
create index log_lines_run on exportd.log_lines (run_id) where run_id is not null;

-- Comparisons with the source -----------------------------------------------------------------------------------------

-- One row per current manifest of events: when it was last compared with the source, and when it is next. The journal has
-- only changed outcomes, so this is no read model and a rebuild keeps it.
create table exportd.interval_comparisons (
  batch_export_id uuid not null,
  data_interval_start timestamptz not null,
  data_interval_end timestamptz not null,
  -- The run of the current manifest.
  run_id uuid not null unique,
  team_id integer not null,
  config_version integer not null,
  -- Tells models and selections apart: what one statement may compare.
  selection_hash text not null,
  model text not null default 'events' check (model in ('events', 'persons')),
  -- Rows of the manifest, including rejected rows.
  bucket_rows bigint not null,
  -- The end of the interval or the completion of the run, whichever is later.
  compared_from timestamptz not null,
  comparisons integer not null default 0,
  last_compared_at timestamptz,
  outcome text check (outcome in ('equal', 'rows_added', 'rows_missing', 'both', 'source_expired')),
  source_rows bigint,
  -- At least so many rows are only in the source, or only in the bucket.
  added_rows bigint,
  missing_rows bigint,
  -- The fingerprint of the source whose differences were examined last: exported again, held or logged. Of persons the last
  -- one of which every state is in a file.
  examined jsonb,
  -- Who has acknowledged the differences (`by`), when (`at`) and why (`reason`); null once a comparison finds others.
  acknowledgement jsonb,
  -- Null if the interval is never compared again. Before the first comparison the time from which its delay counts.
  next_due_at timestamptz,
  -- From here on it is compared together with a neighbour that is due.
  early_at timestamptz,
  -- Consecutive statements on the source that failed; the next one follows at `retry_at`.
  failures integer not null default 0,
  retry_at timestamptz,
  primary key (batch_export_id, data_interval_start, data_interval_end)
);
create index interval_comparisons_due on exportd.interval_comparisons (next_due_at) where next_due_at is not null;
create index interval_comparisons_neighbours on exportd.interval_comparisons
  (team_id, selection_hash, data_interval_start) where next_due_at is not null;
-- Metrics read the latest comparison of each export, and count differences.
create index interval_comparisons_latest on exportd.interval_comparisons (batch_export_id, last_compared_at desc)
  where last_compared_at is not null;
create index interval_comparisons_differing on exportd.interval_comparisons (batch_export_id, outcome)
  where outcome in ('rows_added', 'rows_missing', 'both');

-- Intervals that exportd exports again by itself, because the source has rows that their manifests lack. Those of an export
-- are the queue of its repair. An interval that is lost here is found again by its next comparison.
create table exportd.interval_repairs (
  batch_export_id uuid not null,
  data_interval_start timestamptz not null,
  data_interval_end timestamptz not null,
  -- The run of the manifest that lacks rows.
  run_id uuid not null,
  requested_at timestamptz not null default clock_timestamp(),
  primary key (batch_export_id, data_interval_start, data_interval_end)
);

-- The token bucket of the rows that comparisons read. It is empty until `available_at`.
create table exportd.comparison_budget (
  singleton boolean primary key default true check (singleton),
  available_at timestamptz not null
);

-- Verifications of an interval that a person requested. A report names rows by their ids, so that it must not be part of
-- a workflow history.
create table exportd.verifications (
  id uuid primary key default gen_random_uuid(),
  batch_export_id uuid not null,
  team_id integer not null,
  user_id integer not null,
  data_interval_start timestamptz not null,
  data_interval_end timestamptz not null,
  -- Whether all values are compared, not only the presence of rows.
  deep boolean not null,
  -- Null while it runs, and if it failed.
  report jsonb,
  has_findings boolean generated always as (report ->> 'ok' = 'false') stored,
  -- Why it failed, for users.
  error text,
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
create index verifications_of_interval on exportd.verifications (batch_export_id, data_interval_start, created_at desc);
create index verifications_age on exportd.verifications (created_at);

-- Distinct ids of persons whose rows are erased from files and left out of exports, for as long as the source may have them.
create table exportd.erased_ids (
  erasure_id uuid not null,
  team_id integer not null,
  -- SHA-256 of the id of the erasure and the distinct id, as the journal and the certificate have it.
  id_hash text not null,
  -- The distinct id, sealed.
  sealed text not null,
  primary key (erasure_id, id_hash)
);
create index erased_ids_team on exportd.erased_ids (team_id);

-- How far an erasure has searched an export. What it has found is in the journal.
create table exportd.erasure_searches (
  erasure_id uuid not null,
  batch_export_id uuid not null,
  -- Intervals that start before this are searched; null before the first one.
  searched_until timestamptz,
  -- The manifests of later runs are searched again.
  searched_at timestamptz not null default clock_timestamp(),
  intervals integer not null default 0,
  files bigint not null default 0,
  rows bigint not null default 0,
  bytes bigint not null default 0,
  primary key (erasure_id, batch_export_id)
);

-- What people ask of the table of an export. Only workers decrypt what reading its bucket requires.
create table exportd.table_requests (
  id uuid primary key default gen_random_uuid(),
  batch_export_id uuid not null,
  team_id integer not null,
  operation text not null check (operation in ('describe', 'history', 'check', 'repair')),
  -- Which versions of a history.
  parameters jsonb not null default '{}',
  -- Null while it runs, and if it failed.
  result jsonb,
  -- Why it failed, for users.
  error text,
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);
create index table_requests_age on exportd.table_requests (created_at);

-- What a run or a check found wrong with the table of an export, until it is repaired or found to be right.
create table exportd.table_faults (
  batch_export_id uuid primary key,
  -- The table is that of this config version.
  config_version integer not null,
  type text not null,
  message text not null,
  found_at timestamptz not null default clock_timestamp()
);

-- Notifications -------------------------------------------------------------------------------------------------------

-- Webhooks, notifications and the progress of each delivery. These are plain tables, not part of the journal: a
-- notification is inserted in the transaction of the event that it reports.
create table exportd.webhooks (
  id uuid primary key,
  team_id integer not null,
  -- The only export it is notified of; null for every export of the project.
  batch_export_id uuid,
  -- The scheme and host of its URL, which readers may see.
  origin text not null,
  -- The sealed URL: its path is often a credential.
  sealed_url text not null,
  events text[] not null,
  -- The form of its messages.
  format text not null default 'json' check (format in ('json', 'slack')),
  -- The sealed secret that signs its messages.
  secret text not null,
  enabled boolean not null default true,
  created_at timestamptz not null default clock_timestamp(),
  -- The latest delivery attempt: when, the HTTP status of the response (or null), and a sentence.
  last_attempt_at timestamptz,
  last_attempt_status integer,
  last_attempt_detail text
);
create index webhooks_team on exportd.webhooks (team_id, created_at desc, id);

create table exportd.notifications (
  -- UUIDv5 of its cause, so that nothing is notified twice.
  id uuid primary key,
  type text not null,
  team_id integer not null,
  -- Null for the test of a webhook.
  batch_export_id uuid,
  run_id uuid,
  -- The `data` field of the message.
  data jsonb not null,
  created_at timestamptz not null default clock_timestamp()
);
create index notifications_age on exportd.notifications (created_at);

create table exportd.webhook_deliveries (
  id uuid primary key default gen_random_uuid(),
  notification_id uuid not null references exportd.notifications on delete cascade,
  webhook_id uuid not null references exportd.webhooks on delete cascade,
  batch_export_id uuid,
  -- The delivery that a person had repeated.
  resend_of uuid,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed', 'dropped')),
  -- The result of the latest attempt, or why the delivery was dropped.
  detail text,
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default clock_timestamp(),
  created_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz
);
create index webhook_deliveries_notification on exportd.webhook_deliveries (notification_id);
-- In list order.
create index webhook_deliveries_listed on exportd.webhook_deliveries (webhook_id, created_at desc, id);
create unique index webhook_deliveries_pending on exportd.webhook_deliveries (webhook_id, notification_id)
  where status = 'pending';
create index webhook_deliveries_of_export on exportd.webhook_deliveries (batch_export_id) where status = 'pending';
create index webhook_deliveries_due on exportd.webhook_deliveries (next_attempt_at) where status = 'pending';

-- Every attempt of a delivery, numbered from 1.
create table exportd.webhook_attempts (
  delivery_id uuid not null references exportd.webhook_deliveries on delete cascade,
  number integer not null,
  attempted_at timestamptz not null default clock_timestamp(),
  duration_ms integer not null,
  -- The HTTP status of the response; null without one.
  status integer,
  detail text not null,
  primary key (delivery_id, number)
);

-- Open incidents: opened by a failure, deleted by a recovery. The owner is the export itself (its schedule) or one of its
-- backfills.
create table exportd.incidents (
  batch_export_id uuid not null,
  owner_id uuid not null,
  data_interval_start timestamptz not null,
  data_interval_end timestamptz not null,
  opened_at timestamptz not null default clock_timestamp(),
  primary key (batch_export_id, owner_id, data_interval_start, data_interval_end)
);
create index incidents_of_backfills on exportd.incidents (opened_at) where owner_id <> batch_export_id;

-- What webhooks were notified of the condition of an export, until it is over. No journal: it follows from outages and from
-- the clock.
create table exportd.notified_conditions (
  batch_export_id uuid not null,
  team_id integer not null,
  cause text not null,
  -- When the cause began; the same for all exports that one outage concerns. Null if it is not known.
  since timestamptz,
  primary key (batch_export_id, cause)
);

-- Operator's faults ---------------------------------------------------------------------------------------------------

-- What the operator has to fix, such as a refused login or a missing relation: one row for all exports. Attempts of waiting
-- runs keep it open. No journal: nothing of it is a fact of an export.
create table exportd.operator_faults (
  -- UUIDv5 of type and message.
  id uuid primary key,
  type text not null,
  message text not null,
  opened_at timestamptz not null default clock_timestamp(),
  last_seen_at timestamptz not null default clock_timestamp(),
  -- Host and process id of the worker that saw it last.
  last_seen_by text not null,
  -- Null while it is open.
  resolved_at timestamptz,
  -- The operator's webhook: until then a worker sends the notification, and when the webhook has received it.
  notify_after timestamptz not null default clock_timestamp(),
  notified_at timestamptz,
  -- When the webhook has received that it is over; null until then, and if it was never notified.
  end_notified_at timestamptz
);

-- The last wait of an active run for the operator. It stays after the wait, because that time does not count towards the
-- limits of the run: they are renewed once.
create table exportd.operator_fault_runs (
  run_id uuid primary key,
  fault_id uuid not null references exportd.operator_faults on delete cascade,
  waiting_since timestamptz not null default clock_timestamp(),
  -- Null while it waits.
  resumed_at timestamptz,
  -- The execution in Temporal whose end renewed the limits; null while they can be renewed.
  renewed_execution text
);
create index operator_fault_runs_waiting on exportd.operator_fault_runs (fault_id) where resumed_at is null;

-- When each worker process last reported, every few seconds: whether any runs, without a request to Temporal.
create table exportd.worker_heartbeats (
  -- Host and process id.
  worker text primary key,
  seen_at timestamptz not null default clock_timestamp()
);

-- Dashboards: reference data ------------------------------------------------------------------------------------------

create table exportd.dashboards (
  id integer generated always as identity primary key,
  team_id integer not null references exportd.projects,
  name text not null,
  description text not null,
  pinned boolean not null,
  tags text[] not null,
  -- 21: everyone in the project may edit; 37: only collaborators.
  restriction_level integer not null check (restriction_level in (21, 37)),
  -- For users without a row in dashboard_access_controls.
  default_access_level text not null check (default_access_level in ('none', 'viewer', 'editor', 'manager')),
  created_by integer references exportd.users on delete set null,
  created_at timestamptz not null default clock_timestamp()
);
-- In list order.
create index dashboards_listed on exportd.dashboards (team_id, pinned desc, lower(name), id);
create index dashboards_creator on exportd.dashboards (created_by);

-- Collaborators. The creator is always a manager.
create table exportd.dashboard_access_controls (
  dashboard_id integer not null references exportd.dashboards on delete cascade,
  user_id integer not null references exportd.users on delete cascade,
  access_level text not null check (access_level in ('none', 'viewer', 'editor', 'manager')),
  primary key (dashboard_id, user_id)
);
create index dashboard_access_controls_user on exportd.dashboard_access_controls (user_id);

-- Query definitions: what operators define for a project --------------------------------------------------------------

create table exportd.warehouse_tables (
  team_id integer not null references exportd.projects,
  -- The name in queries; it may contain dots.
  name text not null,
  -- The relation in the source, which may be another database.
  relation_schema text not null,
  relation_name text not null,
  -- Null if every row belongs to the project; then no other project can register the relation.
  team_column text,
  created_at timestamptz not null default clock_timestamp(),
  primary key (team_id, name)
);
create index warehouse_tables_relation on exportd.warehouse_tables (relation_schema, relation_name);

create table exportd.property_definitions (
  team_id integer not null references exportd.projects,
  scope text not null check (scope in ('event', 'person')),
  name text not null,
  type text not null check (type in ('numeric', 'boolean', 'datetime')),
  created_at timestamptz not null default clock_timestamp(),
  last_updated_at timestamptz not null default clock_timestamp(),
  primary key (team_id, scope, name)
);

-- Values that queries read as {variables.<code_name>}.
create table exportd.query_variables (
  id uuid primary key default gen_random_uuid(),
  team_id integer not null references exportd.projects,
  code_name text not null,
  name text not null,
  default_value json not null,
  created_at timestamptz not null default clock_timestamp(),
  last_updated_at timestamptz not null default clock_timestamp(),
  unique (team_id, code_name)
);

-- Queries: everything below expires -----------------------------------------------------------------------------------

-- Outputs of queries. The newest row of a cache key is the cached result; statuses refer to theirs by id.
create table exportd.query_results (
  id uuid primary key,
  team_id integer not null,
  cache_key text not null,
  -- The number of rows in query_result_parts.
  part_count integer not null,
  -- Milliseconds until clients should request a refresh.
  next_refresh_ms integer not null,
  computed_at timestamptz not null default clock_timestamp()
);
create index query_results_cached on exportd.query_results (team_id, cache_key, computed_at desc);
create index query_results_computed on exportd.query_results (computed_at);

-- The output of a query as JSON. A process reads and writes it part by part, since it can have many megabytes.
create table exportd.query_result_parts (
  result_id uuid not null references exportd.query_results on delete cascade,
  number integer not null,
  content text not null,
  primary key (result_id, number)
);

-- Queries with a status: background queries, and those with a client_query_id.
create table exportd.queries (
  team_id integer not null,
  id text not null,
  -- The user who sent it. Other users neither read nor cancel it.
  user_id integer not null,
  -- An id can be reused once its query has ended; this distinguishes the executions.
  execution_id uuid not null unique,
  kind text not null,
  -- Stored here for the worker, because the text of a query must not enter a Temporal history.
  query json not null,
  variables json not null,
  cache_key text not null,
  query_async boolean not null,
  status text not null check (status in ('queued', 'running', 'completed', 'failed', 'cancelled')),
  cancel_requested boolean not null default false,
  error_code text,
  error_message text,
  progress json,
  result_id uuid,
  start_time timestamptz not null default clock_timestamp(),
  pickup_time timestamptz,
  end_time timestamptz,
  -- Null until the query has ended.
  expiration_time timestamptz,
  -- Only for queries that a server process runs itself. Heartbeats renew it; it passes when the process is lost.
  lease_expires_at timestamptz,
  primary key (team_id, id)
);
create index queries_running on exportd.queries (team_id, cache_key) where end_time is null;
create index queries_expiration on exportd.queries (expiration_time);

-- Requests of the last hour, numbered without gaps, so that the request `limit` numbers ago is found by its number.
create table exportd.query_request_counts (
  team_id integer primary key,
  last_number bigint not null default 0
);
create table exportd.query_requests (
  team_id integer not null,
  number bigint not null,
  requested_at timestamptz not null default clock_timestamp(),
  primary key (team_id, number)
);
create index query_requests_time on exportd.query_requests (team_id, requested_at);

-- A sliding-window rate limiter: admits a request unless the last hour has used up the limit. A function, because each of
-- its statements then sees what was committed before the lock was acquired. `resets_at` is when the next slot becomes free.
create function exportd.admit_query_request(
  team integer, max_requests integer,
  out admitted boolean, out used integer, out resets_at timestamptz, out decided_at timestamptz
) language plpgsql as $$
declare
  latest bigint;
  hour constant interval := interval '1 hour';
begin
  insert into exportd.query_request_counts (team_id) values (team) on conflict do nothing;
  select last_number into latest from exportd.query_request_counts where team_id = team for update;
  decided_at := clock_timestamp();
  select requested_at + hour into resets_at from exportd.query_requests
    where team_id = team and number = latest + 1 - max_requests and requested_at > decided_at - hour;
  admitted := not found;
  if admitted then
    latest := latest + 1;
    update exportd.query_request_counts set last_number = latest where team_id = team;
    insert into exportd.query_requests values (team, latest, decided_at);
    delete from exportd.query_requests where team_id = team and requested_at <= decided_at - hour;
  end if;
  select latest - number + 1, coalesce(resets_at, requested_at + hour) into used, resets_at
    from exportd.query_requests where team_id = team and requested_at > decided_at - hour
    order by requested_at, number limit 1;
end
$$;
