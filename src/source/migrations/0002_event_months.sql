-- Events lie in partitions by the month of their timestamp, so that a query reads no other months than its own and old
-- months can be detached. What a plain table holds stays where it is, as the default partition: nothing is copied.
do $$
declare
  dependent text;
  privilege record;
begin
  select object into dependent from (
    select pg_describe_object(classid, objid, objsubid) as object from pg_catalog.pg_depend
      where refobjid = 'public.events'::regclass
        and classid in ('pg_catalog.pg_rewrite'::regclass, 'pg_catalog.pg_publication_rel'::regclass)
    union all
    select format('trigger %I', tgname) from pg_catalog.pg_trigger
      where tgrelid = 'public.events'::regclass and not tgisinternal
  ) as objects limit 1;
  if dependent is not null then
    raise exception 'public.events becomes a partitioned table, and % would stay with the old one.', dependent
      using hint = 'Drop it, migrate, and make it again.';
  end if;

  alter table public.events rename to events_default;
  alter index public.events_team_inserted rename to events_default_team_inserted;
  create table public.events (like public.events_default including defaults including storage including comments)
    partition by range (timestamp);
  for privilege in
    select grantee, privilege_type from pg_catalog.pg_class, aclexplode(relacl)
    where oid = 'public.events_default'::regclass and grantee <> relowner
  loop
    execute format('grant %s on public.events to %s', privilege.privilege_type,
      case privilege.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(privilege.grantee)) end);
  end loop;
  alter table public.events attach partition public.events_default default;
end
$$;

-- Exports page by it; the index of the plain table becomes a part of it.
create index events_team_inserted on public.events (team_id, inserted_at, uuid);
-- What queries ask for: all events of a time, those of a name (with who did it, so that counting persons reads no rows),
-- those of a person, of a distinct id, of a session.
create index events_team_timestamp on public.events (team_id, timestamp);
create index events_team_event on public.events (team_id, event, timestamp) include (person_id);
create index events_team_person on public.events (team_id, person_id, timestamp);
create index events_team_distinct_id on public.events (team_id, distinct_id, timestamp);
create index events_team_session on public.events (team_id, (properties ->> '$session_id'), timestamp);
-- How many sessions some events have, which decides whether they are looked up one by one.
create statistics public.events_session on (properties ->> '$session_id') from public.events;

-- Adds the months that are missing, from the last one to `ahead` months from now, and gives their names. Rows of other
-- months are in the default partition, and a month stays there that has begun there.
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
