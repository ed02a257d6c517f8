import { computed, signal } from '@preact/signals';
import type { Session } from '../../http/projects/schema.ts';
import { ApiFailure, failureOf } from './api_failure.ts';

export type { Session };

const path = '/console/session';
const headers = { 'x-exportd-console': '1', 'content-type': 'application/json' };

/** Who is signed in; null: nobody; undefined: not known yet. */
export const session = signal<Session | null | undefined>(undefined);

/** Reads who is signed in. @throws ApiFailure */
export async function readSession(): Promise<void> {
  const response = await fetch(path);
  if (!response.ok) throw await failureOf(response);
  session.value = ((await response.json()) as { session: Session | null }).session;
}

/** Signs in with an API key, which the browser then keeps out of reach of scripts. @throws ApiFailure */
export async function signIn(key: string): Promise<void> {
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify({ key }) });
  if (!response.ok) throw await failureOf(response);
  session.value = ((await response.json()) as { session: Session }).session;
}

/** Signs out: the server removes the cookie. */
export async function signOut(): Promise<void> {
  await fetch(path, { method: 'DELETE', headers: { 'x-exportd-console': '1' } });
  signedOut();
}

/** Shows the sign-in page: the key was revoked or the cookie is gone. */
export function signedOut(): void {
  session.value = null;
}

/** The id of the project of the key. @throws ApiFailure 401 if nobody is signed in */
export function projectOf(): number {
  const current = session.peek();
  if (!current)
    throw new ApiFailure(401, { code: 'not_authenticated', detail: 'Sign in first.', attr: null });
  return current.project.id;
}

/** The scopes that keys can have. */
export type Scope =
  | 'batch_export:read'
  | 'batch_export:write'
  | 'dashboard:read'
  | 'dashboard:write'
  | 'query:read';

const scopes = computed(() => new Set<string>(session.value?.scopes ?? []));

/** Whether the key may do this. What it may not do is not shown as possible. */
export const may = (scope: Scope): boolean => scopes.value.has(scope);

/** The time zone of the project, which times are shown in. */
export const timezone = computed(() => session.value?.project.timezone ?? 'UTC');
