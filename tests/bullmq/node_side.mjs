// The other side: BullMQ's own producer and worker in Node. Says what it saw as one line of JSON.
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, port, prefix, task, ...rest] = process.argv.slice(2);
const { Queue, Worker } = createRequire(join(folder, "package.json"))("bullmq");
const options = { connection: { host: "127.0.0.1", port: Number(port) }, prefix };

async function produce(name, count) {
  const queue = new Queue(name, options);
  const ids = [];
  for (let n = 0; n < Number(count); n++) {
    const job = await queue.add("from-node", { n }, { attempts: 3, backoff: 10, priority: n % 3 });
    ids.push(job.id);
  }
  await queue.close();
  return { ids };
}

async function schedule(name, id, every) {
  const queue = new Queue(name, options);
  const job = await queue.upsertJobScheduler(
    id,
    { every: Number(every) },
    { name: "tick", data: { n: 1 } },
  );
  await queue.close();
  return { id: job.id };
}

async function look(name, ...ids) {
  const queue = new Queue(name, options);
  const found = {};
  for (const id of ids) {
    const job = await queue.getJob(id);
    found[id] = job && {
      name: job.name,
      data: job.data,
      state: await job.getState(),
      returnvalue: job.returnvalue,
      failedReason: job.failedReason,
      attemptsMade: job.attemptsMade,
      progress: job.progress,
    };
  }
  await queue.close();
  return found;
}

// Works until so many jobs have ended here, or until there was nothing for a while.
async function consume(name, count, patience) {
  const ran = [];
  let ended = 0;
  await new Promise((resolve) => {
    let timer = setTimeout(resolve, Number(patience));
    const worker = new Worker(
      name,
      async (job) => {
        ran.push({ id: job.id, name: job.name, data: job.data, made: job.attemptsMade });
        await job.updateProgress(50);
        if (job.data && job.data.fails > job.attemptsMade) throw new Error("not yet");
        return { by: "node", n: job.data && job.data.n };
      },
      { ...options, drainDelay: 1 },
    );
    const count_end = (job) => {
      if (job && job.finishedOn) ended += 1;
      clearTimeout(timer);
      if (ended >= Number(count)) worker.close().then(resolve);
      else timer = setTimeout(() => worker.close().then(resolve), Number(patience));
    };
    worker.on("completed", count_end);
    worker.on("failed", count_end);
  });
  return { ran };
}

const tasks = { produce, schedule, look, consume };
console.log(JSON.stringify(await tasks[task](...rest)));
process.exit(0);
