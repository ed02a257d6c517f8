-- Dashboards and their access controls. Reference data: rows are updated in place, and a deleted dashboard keeps its row
-- so that it can be restored.
alter table exportd.projects add column dashboard_restriction_level integer not null default 21
  check (dashboard_restriction_level in (21, 37));

create table exportd.dashboards (
  id integer generated always as identity primary key,
  team_id integer not null references exportd.projects,
  name text not null,
  description text not null default '',
  pinned boolean not null default false,
  tags text[] not null default '{}',
  is_shared boolean not null default false,
  creation_mode text not null default 'default' check (creation_mode in ('default', 'template', 'duplicate')),
  -- 21: everyone in the project may edit; 37: only collaborators.
  restriction_level integer not null default 21 check (restriction_level in (21, 37)),
  -- For users without a row in dashboard_access_controls.
  default_access_level text not null default 'editor'
    check (default_access_level in ('none', 'viewer', 'editor', 'manager')),
  deleted boolean not null default false,
  created_by integer references exportd.users on delete set null,
  created_at timestamptz not null default clock_timestamp()
);
-- In list order.
create index dashboards_listed on exportd.dashboards (team_id, pinned desc, lower(name), id) where not deleted;
create index dashboards_creator on exportd.dashboards (created_by);

-- Collaborators. The creator is always a manager and has no row.
create table exportd.dashboard_access_controls (
  dashboard_id integer not null references exportd.dashboards on delete cascade,
  user_id integer not null references exportd.users on delete cascade,
  access_level text not null check (access_level in ('none', 'viewer', 'editor', 'manager')),
  primary key (dashboard_id, user_id)
);
create index dashboard_access_controls_user on exportd.dashboard_access_controls (user_id);
