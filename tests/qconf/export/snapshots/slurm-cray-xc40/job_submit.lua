-- Sends each job to the first queue, in this order, that takes its cores and its walltime. Written by qconf export.
-- slurm.conf needs JobSubmitPlugins=lua; this file goes beside it.

local QUEUES = { -- cores from least to most, walltime in seconds above `above` up to `upto`
   { name = "idqueue", least = 8, most = 256, above = 0, upto = 7200 },
   { name = "small", least = 24, most = 1032, above = 0, upto = 86400 },
   { name = "small72", least = 24, most = 1032, above = 86400, upto = 259200 },
   { name = "medium", least = 1033, most = 8208, above = 0, upto = 86400 },
   { name = "large", least = 8209, most = 22800, above = 0, upto = 86400 },
}
local NODE = 24 -- cores of a node, where jobs are given whole nodes
local POOL = nil -- entered by qconf-promote only
local UNSET16, UNSET32, UNLIMITED = 65534, 4294967294, 4294967295 -- Slurm's NO_VAL16, NO_VAL and INFINITE

local function given(value, unset)
   if value == nil or value == 0 or value >= (unset or UNSET32) then
      return nil
   end
   return value
end

local function whole(cores) -- of the nodes that hold so many
   return NODE and math.ceil(cores / NODE) * NODE or cores
end

local function cores_of(job)
   local tasks, each = given(job.num_tasks) or 1, given(job.cpus_per_task, UNSET16) or 1
   local nodes = given(job.min_nodes) or 1
   return whole(math.max(tasks * each, given(job.min_cpus) or 1, nodes * (NODE or 1)))
end

local function takes(queue, cores, walltime)
   return cores >= queue.least and cores <= whole(queue.most)
      and (walltime == nil or (walltime > queue.above and walltime <= queue.upto))
end

function slurm_job_submit(job, part_list, submit_uid)
   local cores, minutes = cores_of(job), given(job.time_limit)
   local walltime = minutes and minutes * 60 or nil
   if job.time_limit == UNLIMITED then
      walltime = math.huge
   end
   for _, queue in ipairs(QUEUES) do
      if (job.partition == nil or job.partition == queue.name) and takes(queue, cores, walltime) then
         job.partition = queue.name
         if walltime == nil and queue.upto < math.huge then
            job.time_limit = math.ceil(queue.upto / 60)
         end
         return slurm.SUCCESS
      end
   end
   if job.partition ~= nil and job.partition ~= POOL then
      for _, queue in ipairs(QUEUES) do
         if job.partition == queue.name then
            slurm.log_user(string.format("partition %s does not take %d cores for that long; leave -p out", queue.name, cores))
            return slurm.ERROR
         end
      end
      return slurm.SUCCESS -- none of ours
   end
   slurm.log_user(string.format("no queue takes a job of %d cores for that long", cores))
   return slurm.ERROR
end

function slurm_job_modify(job, job_record, part_list, modify_uid)
   return slurm.SUCCESS
end

slurm.log_info("qconf: routing to %d queues", #QUEUES)
return slurm.SUCCESS
