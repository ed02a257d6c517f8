/** A project of a stack with its own user and keys. */
import type { Scope } from '../../src/http/scopes.ts';
import { configOf } from '../destination/bucket_requests.ts';
import type { Stack } from '../e2e/stack.ts';
import type { TestBucket } from '../setup/bucket.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';

export interface Tenant {
  readonly projectId: number;
  /** Sends a request with a key of the project; `path` is relative to the project. */
  call(
    method: string,
    path: string,
    body?: unknown,
    options?: { readonly signal?: AbortSignal; readonly readOnly?: boolean },
  ): Promise<{ readonly status: number; readonly text: string }>;
  /** Creates an export, and returns its id. */
  createExport(fields: Record<string, unknown>, config: Record<string, unknown>): Promise<string>;
}

/** The format of exports that name none. */
export const format = { file_format: 'JSONLines', compression: 'gzip' };

export async function createTenant(
  { pool, baseUrl }: Stack,
  name: string,
  bucket: TestBucket,
): Promise<Tenant> {
  const user = await createUser(pool, { first_name: name, last_name: 'Ter', email: `${name}@example.com` });
  const project = await createProject(pool, { name, timezone: 'UTC', week_start_day: 'sunday' });
  const keyOf = async (...scopes: Scope[]): Promise<string> =>
    (await createKey(pool, { user_id: user.id, project_ids: [project.id], scopes })).key;
  const writing = await keyOf('batch_export:read', 'batch_export:write');
  const reading = await keyOf('batch_export:read');
  const call: Tenant['call'] = async (method, path, body, { signal, readOnly = false } = {}) => {
    const response = await fetch(`${baseUrl}/api/environments/${project.id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${readOnly ? reading : writing}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
    return { status: response.status, text: await response.text() };
  };
  return {
    projectId: project.id,
    call,
    createExport: async (fields, config) => {
      const { status, text } = await call('POST', '/batch_exports/', {
        name: `Export of ${name}`,
        model: 'events',
        interval: 'hour',
        ...fields,
        destination: { type: 'S3', config: configOf(bucket, { ...format, ...config }) },
      });
      if (status !== 201) throw new Error(`Could not create the export: ${text}`);
      return (JSON.parse(text) as { id: string }).id;
    },
  };
}
