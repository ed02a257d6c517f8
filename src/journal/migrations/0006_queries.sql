-- The query endpoint: nothing here is a fact of the journal, and all of it but the variables expires.

-- Answers of queries. The newest of a cache key is the cached one; statuses name theirs.
create table exportd.query_results (
  id uuid primary key,
  team_id integer not null,
  cache_key text not null,
  -- As it was made: jsonb would sort members and refuse some texts.
  answer json not null,
  computed_at timestamptz not null default clock_timestamp()
);
create index query_results_cached on exportd.query_results (team_id, cache_key, computed_at desc);
create index query_results_computed on exportd.query_results (computed_at);

-- Queries that can be asked about: those in the background, and those to which a client gave an id.
create table exportd.queries (
  team_id integer not null,
  id text not null,
  -- One id may be used again once its query has ended; this tells the executions apart.
  execution_id uuid not null unique,
  kind text not null,
  -- The text of a query waits here, since it never enters a history of Temporal.
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
  -- Of a query that a server process runs itself: a process that was killed does not move it any more.
  alive_until timestamptz,
  primary key (team_id, id)
);
create index queries_under_way on exportd.queries (team_id, cache_key) where end_time is null;
create index queries_expiration on exportd.queries (expiration_time);

-- Requests of the last hour, numbered without gaps, so that the one a limit ago is found by its number.
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

-- Counts a request unless the limit of the hour is used up. A function, so that each statement sees what was committed
-- before the lock was had. `free_at` is when the oldest request that stands in the way leaves the hour.
create function exportd.count_query_request(
  team integer, most integer, out admitted boolean, out used integer, out free_at timestamptz, out counted_at timestamptz
) language plpgsql as $$
declare
  numbered bigint;
  hour constant interval := interval '1 hour';
begin
  insert into exportd.query_request_counts (team_id) values (team) on conflict do nothing;
  select last_number into numbered from exportd.query_request_counts where team_id = team for update;
  counted_at := clock_timestamp();
  select requested_at + hour into free_at from exportd.query_requests
    where team_id = team and number = numbered + 1 - most and requested_at > counted_at - hour;
  admitted := not found;
  if admitted then
    numbered := numbered + 1;
    update exportd.query_request_counts set last_number = numbered where team_id = team;
    insert into exportd.query_requests values (team, numbered, counted_at);
    delete from exportd.query_requests where team_id = team and requested_at <= counted_at - hour;
  end if;
  select numbered - number + 1, coalesce(free_at, requested_at + hour) into used, free_at
    from exportd.query_requests where team_id = team and requested_at > counted_at - hour
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
