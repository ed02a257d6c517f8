-- The query endpoint. None of this is part of the journal, and everything except the variables expires.

-- Outputs of queries. The newest row of a cache key is the cached result; statuses refer to theirs by id.
create table exportd.query_results (
  id uuid primary key,
  team_id integer not null,
  cache_key text not null,
  -- json, not jsonb, which reorders fields and rejects strings with \u0000.
  output json not null,
  computed_at timestamptz not null default clock_timestamp()
);
create index query_results_cached on exportd.query_results (team_id, cache_key, computed_at desc);
create index query_results_computed on exportd.query_results (computed_at);

-- Queries with a status: background queries, and those with a client_query_id.
create table exportd.queries (
  team_id integer not null,
  id text not null,
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
