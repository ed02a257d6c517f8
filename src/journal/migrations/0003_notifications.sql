-- Webhooks, notifications and the progress of each delivery. These are plain tables, not part of the journal: a
-- notification is inserted in the transaction of the event that it reports.
create table exportd.webhooks (
  id uuid primary key,
  team_id integer not null,
  -- The only export it is notified of; null for every export of the project.
  batch_export_id uuid,
  url text not null,
  events text[] not null,
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
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed', 'dropped')),
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default clock_timestamp(),
  created_at timestamptz not null default clock_timestamp(),
  unique (notification_id, webhook_id)
);
create index webhook_deliveries_webhook on exportd.webhook_deliveries (webhook_id);
create index webhook_deliveries_of_export on exportd.webhook_deliveries (batch_export_id) where status = 'pending';
create index webhook_deliveries_due on exportd.webhook_deliveries (next_attempt_at) where status = 'pending';

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
