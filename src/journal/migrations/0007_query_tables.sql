-- What a project says of its data: further tables that its queries may read, and what its properties hold.

create table exportd.warehouse_tables (
  team_id integer not null references exportd.projects,
  -- As queries call it; it may have dots.
  name text not null,
  -- The relation in the source, which may be another database.
  relation_schema text not null,
  relation_name text not null,
  -- Null where every row is the project's; then no other project has the relation.
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

-- The query in the dialect that chooses the columns of an export's rows: text, columns and all that its meaning depends on.
alter table exportd.destination_configs add column row_query json;
