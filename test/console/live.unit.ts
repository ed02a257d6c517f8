import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { isLive, listenToChanges, onChange } from '../../src/console/api/resource.ts';
import { session } from '../../src/console/api/client.ts';
import type { Session } from '../../src/http/projects/schema.ts';

/** The connections that the console has opened, newest last. */
const opened: FakeEventSource[] = [];

class FakeEventSource extends EventTarget {
  static readonly CLOSED = 2;
  readyState = 0;
  constructor() {
    super();
    opened.push(this);
  }
  close() {
    this.readyState = FakeEventSource.CLOSED;
  }
}

beforeEach(() => {
  jest.useFakeTimers();
  Object.assign(globalThis, {
    EventSource: FakeEventSource,
    document: Object.assign(new EventTarget(), { hidden: false }),
  });
});
afterEach(() => {
  session.value = null;
});
afterAll(() => {
  jest.useRealTimers();
});

describe('live changes in the browser', () => {
  it('are connected again after a rejected connection, and everything is read again', () => {
    session.value = { project: { id: 1 }, projects: [{ id: 1 }] } as Session;
    const changes: unknown[] = [];
    onChange((change) => changes.push(change));
    listenToChanges();
    const [rejected] = opened;
    rejected?.close();
    rejected?.dispatchEvent(new Event('error'));
    expect(isLive.value).toBe(false);
    jest.runOnlyPendingTimers();
    expect(opened).toHaveLength(2);
    opened[1]?.dispatchEvent(new Event('open'));
    expect(isLive.value).toBe(true);
    expect(changes).toEqual([{ batch_export_ids: [], run_ids: [], backfill_ids: [] }]);
  });
});
