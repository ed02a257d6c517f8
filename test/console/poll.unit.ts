import { afterAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { pollWhileVisible } from '../../src/console/api/resource.ts';

const document = Object.assign(new EventTarget(), { hidden: false });
beforeEach(() => {
  jest.useFakeTimers();
  Object.assign(globalThis, { document });
});
afterAll(() => {
  jest.useRealTimers();
});

const show = (isShown: boolean): void => {
  document.hidden = !isShown;
  document.dispatchEvent(new Event('visibilitychange'));
};

describe('a page', () => {
  it('polls while its tab is visible, and at once when it becomes visible', () => {
    const poll = jest.fn();
    const stop = pollWhileVisible(poll);
    jest.advanceTimersByTime(10_000);
    expect(poll).toHaveBeenCalledTimes(2);
    show(false);
    jest.advanceTimersByTime(60_000);
    expect(poll).toHaveBeenCalledTimes(2);
    show(true);
    expect(poll).toHaveBeenCalledTimes(3);
    jest.advanceTimersByTime(5_000);
    expect(poll).toHaveBeenCalledTimes(4);
    stop();
    jest.advanceTimersByTime(60_000);
    show(true);
    expect(poll).toHaveBeenCalledTimes(4);
  });
});
