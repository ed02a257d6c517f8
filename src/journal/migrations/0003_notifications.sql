-- Who is told of what happens to exports, what there is to tell, and how far each telling has come. Plain tables: a
-- notification is made once, with the event that it tells of, and is no fact of the journal.
create table exportd.webhooks (
  id uuid primary key,
  team_id integer not null,
  -- The one export that it is told of; null for all of the project.
  batch_export_id uuid,
  url text not null,
  events text[] not null,
  -- What its messages are signed with, sealed.
  secret text not null,
  enabled boolean not null default true,
  created_at timestamptz not null default clock_timestamp(),
  -- The latest attempt to tell it something: when, the status of the answer or null, and a sentence.
  last_attempt_at timestamptz,
  last_attempt_status integer,
  last_attempt_detail text
);
create index webhooks_team on exportd.webhooks (team_id, created_at desc, id);

create table exportd.notifications (
  -- Made from what it tells of, so that nothing is told twice.
  id uuid primary key,
  type text not null,
  team_id integer not null,
  -- Null in the test of a webhook.
  batch_export_id uuid,
  run_id uuid,
  -- What the message says of it.
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

-- Exports of which trouble was told and not yet that they work again.
create table exportd.troubled_exports (
  batch_export_id uuid primary key,
  since timestamptz not null default clock_timestamp()
);
