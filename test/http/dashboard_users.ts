import { createKey, createUser, type Scope, scopes } from '../../src/http/accounts.ts';
import type { ApiResponse, ApiHarness } from './api_harness.ts';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** A user with an API key. */
export interface DashboardUser {
  readonly id: number;
  readonly uuid: string;
  /** Sends a request with this user's key. A path without a leading `/` is relative to the project. */
  call(method: Method, path: string, body?: unknown): Promise<ApiResponse>;
}

/** Creates a user with a key for the project of the harness or another one. */
export async function createDashboardUser(
  api: ApiHarness,
  name: string,
  more: { readonly projectId?: number; readonly scopes?: readonly Scope[] } = {},
): Promise<DashboardUser> {
  const { pool } = api.database;
  const user = await createUser(pool, { email: `${name}@example.com`, first_name: name });
  const { key } = await createKey(pool, {
    user_id: user.id,
    project_ids: [more.projectId ?? api.projectId],
    scopes: more.scopes ?? scopes,
  });
  return {
    id: user.id,
    uuid: user.uuid,
    call: (method, path, body) => api.call(method, path, body, { authorization: `Bearer ${key}` }),
  };
}
