-- Destination configs under test, stored here because workflow histories must not contain them. A test deletes its config
-- when it ends; the next test deletes those older than an hour.
create table exportd.destination_tests (
  id uuid primary key,
  -- The id that the secrets are sealed for: the export that owns them, or the test itself.
  owner_id uuid not null,
  destination_type text not null,
  config jsonb not null,
  secrets jsonb not null,
  created_at timestamptz not null default clock_timestamp()
);
create index destination_tests_age on exportd.destination_tests (created_at);
