-- What operators define for a project: additional tables that its queries may read, and the types of its properties.

create table exportd.warehouse_tables (
  team_id integer not null references exportd.projects,
  -- The name in queries; it may contain dots.
  name text not null,
  -- The relation in the source, which may be another database.
  relation_schema text not null,
  relation_name text not null,
  -- Null if every row belongs to the project; then no other project can register the relation.
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

-- The dialect query that selects the columns of an export: its text, its columns and everything its meaning depends on.
alter table exportd.destination_configs add column row_query json;
