-- Organisations, teams and the like, which events name by `$group_0` to `$group_4`. A source may have a relation of that
-- name already: it stays as it is, and queries read it where it has these columns.
create table if not exists public.groups (
  team_id integer not null,
  group_type_index integer not null,
  group_key text not null,
  group_properties jsonb not null default '{}',
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  primary key (team_id, group_type_index, group_key)
);
