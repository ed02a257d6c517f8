import { IANAZone } from 'luxon';
import type { TimeZone } from '../time_zone.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const lastProbe = Date.UTC(2040, 0);
/** Clock changes have been further apart since 1970. */
const probeMs = 15 * dayMs;
const knownZones = new Map<string, boolean>();

/**
 * Whether a clock change from 1970 to 2040 repeats a midnight of the zone, as in Atlantic/Azores each autumn. The first
 * call for a zone takes some 15 ms.
 */
export function repeatsMidnight({ name, isUtc }: TimeZone): boolean {
  const known = isUtc ? false : knownZones.get(name);
  if (known !== undefined) return known;
  const found = findRepeatedMidnight(IANAZone.create(name));
  knownZones.set(name, found);
  return found;
}

function findRepeatedMidnight(zone: IANAZone): boolean {
  let before = zone.offset(0);
  for (let probe = probeMs; probe < lastProbe; probe += probeMs) {
    const after = zone.offset(probe);
    if (after < before) {
      const change = changeBetween(zone, probe - probeMs, probe, before);
      const [first, last] = [change + after * minuteMs, change + before * minuteMs];
      if (Math.ceil(first / dayMs) * dayMs < last) return true;
    }
    before = after;
  }
  return false;
}

/** The minute at which the offset changes, between a time with the offset and one with another. */
function changeBetween(zone: IANAZone, from: number, to: number, offset: number): number {
  let [earlier, later] = [from, to];
  while (later - earlier > minuteMs) {
    const middle = earlier + Math.floor((later - earlier) / 2 / minuteMs) * minuteMs;
    if (zone.offset(middle) === offset) earlier = middle;
    else later = middle;
  }
  return later;
}
