-- Configs that wait to be tested: a workflow's history must not hold them. Each is removed with its test, at the latest
-- by the next test an hour later.
create table exportd.destination_tests (
  id uuid primary key,
  -- What the secrets are sealed for: the export that they belong to, or the test itself.
  owner_id uuid not null,
  destination_type text not null,
  config jsonb not null,
  secrets jsonb not null,
  created_at timestamptz not null default clock_timestamp()
);
create index destination_tests_age on exportd.destination_tests (created_at);
