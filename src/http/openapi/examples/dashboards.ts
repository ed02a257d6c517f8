import type { z } from 'zod';
import type {
  CreateDashboardBody,
  createDashboardBody,
  DashboardDetailResponse,
  DashboardResponse,
  updateDashboardBody,
} from '../../schemas/dashboard.ts';
import type { projectSchema } from '../../schemas/project.ts';
import { ids, pageWith, type ExampleTable } from './example.ts';

const dashboard = {
  id: 7,
  name: 'Sales',
  description: 'Orders and revenue of the shop.',
  pinned: true,
  created_at: '2026-11-01T08:00:00.000Z',
  created_by: {
    id: 1,
    uuid: ids.user,
    distinct_id: ids.user,
    first_name: 'Ada',
    last_name: 'Lovelace',
    email: 'ada@example.com',
    is_email_verified: true,
    mascot_config: {},
    role_at_organization: 'engineering',
  },
  is_shared: false,
  deleted: false,
  creation_mode: 'default',
  tags: ['shop'],
  restriction_level: 21,
  effective_restriction_level: 21,
  effective_privilege_level: 37,
  user_access_level: 'manager',
} satisfies DashboardResponse;

const detail = {
  ...dashboard,
  default_access_level: 'editor',
  access_controls: [],
} satisfies DashboardDetailResponse;

const create = {
  name: 'Sales',
  description: 'Orders and revenue of the shop.',
  pinned: true,
  tags: ['shop'],
} satisfies z.input<typeof createDashboardBody> & Partial<CreateDashboardBody>;
const restrict = { restriction_level: 37, default_access_level: 'viewer' } satisfies z.input<
  typeof updateDashboardBody
>;
const restore = { deleted: false } satisfies z.input<typeof updateDashboardBody>;

const project = {
  id: 1,
  name: 'Website',
  timezone: 'Europe/Berlin',
  week_start_day: 'monday',
  external_id: 'exportd-1-4f2a9c',
} satisfies z.output<typeof projectSchema>;

export const dashboardExamples: ExampleTable = {
  'GET /dashboards': { responses: { 200: pageWith(dashboard) } },
  'POST /dashboards': { body: { dashboard: create }, responses: { 201: { created: detail } } },
  'GET /dashboards/{id}': { responses: { 200: { dashboard: detail } } },
  'PATCH /dashboards/{id}': {
    body: { only_collaborators_edit: restrict, restore },
    responses: {
      200: { restricted: { ...detail, ...restrict, effective_restriction_level: 37 } },
    },
  },
  'DELETE /dashboards/{id}': {},
  'GET /api/projects': { responses: { 200: pageWith(project) } },
};
