-- Trouble that was told, until it is over: of a schedule (its export is the owner) or of a backfill, by interval.
create table exportd.troubles (
  batch_export_id uuid not null,
  owner_id uuid not null,
  data_interval_start timestamptz not null,
  data_interval_end timestamptz not null,
  since timestamptz not null default clock_timestamp(),
  primary key (batch_export_id, owner_id, data_interval_start, data_interval_end)
);
create index troubles_of_backfills on exportd.troubles (since) where owner_id <> batch_export_id;
-- Whose trouble it was, and of which interval, was not kept: it counts as the schedule's, which needs no interval.
insert into exportd.troubles select batch_export_id, batch_export_id, since, since, since from exportd.troubled_exports;
drop table exportd.troubled_exports;
