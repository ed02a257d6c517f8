import { expect } from '@jest/globals';
import type { Answer, Facade } from './facade.ts';

/** Creates a dashboard of the facade's project and answers its id. */
export async function createDashboard(
  facade: Facade,
  members: Readonly<Record<string, unknown>>,
): Promise<number> {
  const { status, body, text } = await facade.call('POST', 'dashboards/', members);
  expect([status, text]).toEqual([201, expect.any(String)]);
  return body.id as number;
}

/** The names in a list of dashboards, in its order. */
export const namesIn = ({ body }: Answer): string[] =>
  (body.results as { name: string }[]).map(({ name }) => name);
