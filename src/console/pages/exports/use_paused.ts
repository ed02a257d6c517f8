import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** The value as of the last pause of this length, so that nothing is read with every key. */
export function usePaused<Value>(value: Value, pauseMs: number): Value {
  const paused = useSignal(value);
  useEffect(() => {
    const timer = window.setTimeout(() => {
      paused.value = value;
    }, pauseMs);
    return () => window.clearTimeout(timer);
  }, [value, pauseMs]);
  return paused.value;
}
