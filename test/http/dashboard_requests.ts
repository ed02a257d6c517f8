import { expect } from '@jest/globals';
import type { ApiResponse, ApiHarness } from './api_harness.ts';

/** Creates a dashboard in the project of the harness and returns its id. */
export async function createDashboard(
  api: ApiHarness,
  fields: Readonly<Record<string, unknown>>,
): Promise<number> {
  const { status, body, text } = await api.call('POST', 'dashboards/', fields);
  expect([status, text]).toEqual([201, expect.any(String)]);
  return body.id as number;
}

/** The names of listed dashboards, in order. */
export const namesIn = ({ body }: ApiResponse): string[] =>
  (body.results as { name: string }[]).map(({ name }) => name);
